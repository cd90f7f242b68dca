"""What tables of interventions claim, from runs whose means were planted."""

import csv
import math
import zlib
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from rankstream.lab.closed_loops.policy_log import (
    AFFINE,
    AWARE,
    OBLIVIOUS,
    POLICY_AWARE,
)
from rankstream.lab.closed_loops.policy_training import POLICY_GRADIENT
from rankstream.lab.reproduction.engine import Output
from rankstream.lab.reproduction.figures import Curves, Difference
from rankstream.lab.reproduction.interventions.claims import (
    claims_of,
    is_more,
    is_within,
    matched,
    reached_at,
    spread_difference,
)
from rankstream.lab.reproduction.interventions.plan import (
    BIASED_PDGD,
    COLTR,
    CONTINUOUS,
    DECAY,
    LONG,
    PDGD,
    SHARP,
    SOFT,
    Cell,
)
from rankstream.lab.reproduction.interventions.report import report
from rankstream.lab.reproduction.interventions.runs import FIGURES, LOGGING, ON_TRAINING


def planted(part: str, method: str, count: int, *values: float, spread: float = 0.002):
    """A cell whose learned policy has these means at 100, 200 ... lists."""
    loss = POLICY_GRADIENT if "-" in method or method == AFFINE else ""
    loss = "" if method == BIASED_PDGD else loss
    impressions = [100, 200, 500, 1_000][: len(values)]
    cell = Cell(part, method, count, loss, impressions[-1])
    rng = np.random.default_rng(zlib.crc32(cell.label.encode()))
    noise = spread * rng.standard_normal((2, 5, 1))
    noise -= noise.mean()
    around = np.broadcast_to(np.array(values), (2, 5, len(values))) + noise
    of = {name: around.copy() for name in FIGURES}
    return cell, Curves(impressions, {**of, "production": np.full((2, 5), 0.5)})


GOOD = [
    planted(SHARP, AWARE, 0, 0.5, 0.6),
    planted(SHARP, AWARE, 50, 0.5, 0.64),
    planted(SHARP, AWARE, 100, 0.5, 0.65),
    planted(SHARP, OBLIVIOUS, 50, 0.5, 0.63, spread=0.05),
    planted(SHARP, POLICY_AWARE, 0, 0.5, 0.58),
    planted(SHARP, AFFINE, 0, 0.5, 0.55),
    planted(SHARP, AFFINE, 50, 0.5, 0.6),
    planted(SHARP, PDGD, CONTINUOUS, 0.5, 0.652),
    planted(SHARP, BIASED_PDGD, CONTINUOUS, 0.5, 0.62),
    planted(SHARP, COLTR, CONTINUOUS, 0.5, 0.45),
    planted(SOFT, AWARE, 0, 0.5, 0.64),
    planted(SOFT, AWARE, 50, 0.5, 0.645),
    planted(DECAY, PDGD, 0, 0.5, 0.6, 0.57),
    planted(DECAY, PDGD, CONTINUOUS, 0.5, 0.6, 0.62),
    planted(SHARP, PDGD, 100, 0.5, 0.648),
]

BAD = [
    planted(SHARP, AWARE, 0, 0.5, 0.66),
    planted(SHARP, AWARE, 50, 0.5, 0.55, spread=0.05),
    planted(SHARP, AWARE, 100, 0.5, 0.62),
    planted(SHARP, OBLIVIOUS, 50, 0.5, 0.63),
    planted(SHARP, POLICY_AWARE, 0, 0.5, 0.68),
    planted(SHARP, AFFINE, 0, 0.5, 0.67),
    planted(SHARP, AFFINE, 50, 0.5, 0.7),
    planted(SHARP, PDGD, CONTINUOUS, 0.5, 0.65),
    planted(SHARP, BIASED_PDGD, CONTINUOUS, 0.5, 0.66),
    planted(SHARP, COLTR, CONTINUOUS, 0.5, 0.66),
    planted(SOFT, AWARE, 0, 0.5, 0.6),
    planted(SOFT, AWARE, 50, 0.5, 0.645),
    planted(DECAY, PDGD, 0, 0.5, 0.6, 0.62),
    planted(DECAY, PDGD, CONTINUOUS, 0.5, 0.6, 0.57),
    planted(SHARP, PDGD, 100, 0.5, 0.62),
]


def test_claims_hold_where_they_were_planted() -> None:
    """And each of them fails where the opposite was; one run alone decides none."""
    holding, failing = claims_of(dict(GOOD)), claims_of(dict(BAD))
    alone = {
        cell: Curves(one.impressions, {k: v[:1, :1] for k, v in one.of.items()})
        for cell, one in GOOD
    }

    assert [claim.text for claim in holding if claim.holds is not True] == []
    assert [claim.text for claim in failing if claim.holds is not False] == []
    assert [claim.text for claim in claims_of(alone) if claim.holds is not None] == []
    assert len(holding) == len(failing) == 16
    assert claims_of(dict(GOOD[:1])) == []


def test_claims_compare_what_they_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Means that were planted, in this order; and the words that are written."""
    found = {cell: curves._replace(of=deepcopy(curves.of)) for cell, curves in GOOD}
    found[GOOD[1][0]].of[LOGGING][:] += 0.1
    found[GOOD[12][0]].of[ON_TRAINING][:, :, -1] -= 0.01
    expected = [0.04, 0.14, None, -0.002, -0.004, 0.052, 0.05, 0.04, 0.02, 0.202, 0.032]
    expected += [0.005, 0.03, 0.04, 0.0, 0.0]
    claims = claims_of(found)

    for claim, value in zip(claims, expected, strict=True):
        assert value is None or claim.gap.value == pytest.approx(value, abs=1e-9)
    assert claims[0].text == (
        "sharp: 50 interventions ahead of none by at least 0.015 after 200 lists"
    )
    assert claims[-1].text == (
        "PDGD net, online, training: does not fall from its best at 500 by 0.005"
    )
    some = [planted(SOFT, AWARE, 0, 0.5, 0.63), planted(SOFT, AWARE, 50, 0.5, 0.645)]
    report(dict(some), Output("small", tmp_path, Console(width=130)), seed=0)
    assert "undecided" in capsys.readouterr().out
    with (tmp_path / "interventions-claims.csv").open() as file:
        assert [row["holds"] for row in csv.DictReader(file)] == ["undecided"]


AHEAD = (AWARE, 50), "sharp: 50 interventions ahead of none"
AS_ONLINE = (AWARE, 100), "sharp, 100: intervention-aware within 0.01"
PDGD_AS_ONLINE = (PDGD, 100), "sharp, 100: pdgd within 0.01"
BEHIND = (PDGD, CONTINUOUS), "sharp: online PDGD ahead of no intervention"


@pytest.mark.parametrize(
    ("claimed", "value", "spread", "holds"),
    [
        (AHEAD, 0.612, 0.0005, False),
        (AHEAD, 0.616, 0.0005, True),
        (AS_ONLINE, 0.625, 0.0005, False),
        (AS_ONLINE, 0.632, 0.0005, True),
        (AS_ONLINE, 0.648, 0.0005, True),
        (AS_ONLINE, 0.655, 0.0005, False),
        (AS_ONLINE, 0.61, 0.1, True),
        (PDGD_AS_ONLINE, 0.625, 0.0005, False),
        (PDGD_AS_ONLINE, 0.632, 0.0005, True),
        (BEHIND, 0.618, 0.0005, False),
        (BEHIND, 0.622, 0.0005, True),
    ],
)
def test_claims_ask_for_as_much_as_they_say(
    claimed: tuple[tuple[str, int], str], value: float, spread: float, holds: object
) -> None:
    """Little more is not enough where runs tell; two errors excuse where they say."""
    kind, text = claimed
    cells = [
        planted(SHARP, AWARE, 0, 0.5, 0.6, spread=0.0005),
        planted(SHARP, PDGD, CONTINUOUS, 0.5, 0.64, spread=0.0005),
        planted(SHARP, *kind, 0.5, value, spread=spread),
    ]
    (claim,) = (one for one in claims_of(dict(cells)) if one.text.startswith(text))

    assert claim.holds is holds


def test_what_interventions_bring_is_said_along_the_way() -> None:
    """After 1,000 lists too, where there are more."""
    cells = []
    for count, values in ((0, (0.5, 0.6, 0.7)), (50, (0.55, 0.62, 0.71))):
        cell, curves = planted(SHARP, AWARE, count, *values)
        cells.append((cell, curves._replace(impressions=[500, 1_000, 2_000])))
    found = {claim.text[-17:]: claim.gap.value for claim in claims_of(dict(cells))[:-1]}

    assert found == pytest.approx(
        {"after 1,000 lists": 0.02, "after 2,000 lists": 0.01}
    )


@pytest.mark.parametrize(
    ("value", "error", "least", "holds"),
    [
        (0.03, 0.014, 0.0, True),
        (0.03, 0.016, 0.0, None),
        (-0.03, 0.016, 0.0, None),
        (-0.03, 0.014, 0.0, False),
        (0.016, 0.007, 0.015, True),
        (0.014, 0.001, 0.015, None),
        (0.012, 0.001, 0.015, False),
        (0.016, 0.009, 0.015, None),
        (0.03, np.nan, 0.0, None),
        (-0.03, np.nan, 0.015, None),
        (np.nan, np.nan, 0.0, None),
    ],
)
def test_more_is_what_chance_does_not_make(
    value: float, error: float, least: float, holds: object
) -> None:
    """Two errors decide, either way."""
    assert is_more(Difference(value, error, 0.5, False), least) is holds


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(
    ("value", "error", "holds"),
    [
        (0.004, 0.005, True),
        (0.006, 0.005, None),
        (0.024, 0.005, None),
        (0.026, 0.005, False),
        (0.0, np.nan, None),
    ],
)
def test_within_counts_errors_in(
    value: float, error: float, holds: object, sign: float
) -> None:
    """On both sides of .015."""
    assert is_within(Difference(sign * value, error, 0.5, False), 0.015) is holds


@pytest.mark.parametrize("shared", [0.0, 0.8])
def test_errors_of_spreads_are_those_of_normal_runs(shared: float) -> None:
    """Deviations within folds, whatever separates folds; pairs share some of it."""
    rng = np.random.default_rng(5)
    found = []
    for _ in range(600):
        both, own = rng.standard_normal((5, 5, 1)), rng.standard_normal((5, 5, 2))
        runs = math.sqrt(shared) * both + math.sqrt(1.0 - shared) * own
        runs = runs * [2.0, 1.5] + 10.0 * np.arange(5.0)[:, None, None]
        gap = spread_difference(runs[..., 0], runs[..., 1])
        found.append((gap.value, gap.error))
    values, errors = np.array(found).T

    assert values.mean() == pytest.approx(0.5, abs=0.05)
    assert errors.mean() == pytest.approx(values.std(), rel=0.08)


def test_spreads_are_within_folds_and_of_pairs() -> None:
    """By hand: 2 sd of 1 and 3 over two folds; what has no pair is left out."""
    one = np.array([[1.0, 3.0, 50.0], [11.0, 13.0, np.nan], [7.0, np.nan, np.nan]])
    other = np.array([[0.0, 6.0, np.nan], [6.0, 0.0, 9.0], [70.0, np.nan, 3.0]])
    gap = spread_difference(one, other)
    two, six = math.sqrt(2.0), math.sqrt(18.0)

    assert gap.value == pytest.approx(two - six)
    assert gap.error == pytest.approx(math.sqrt((2.0 + 18.0) / 4.0))
    assert gap.p == pytest.approx(math.erfc((six - two) / gap.error / two))
    assert math.isnan(spread_difference(one[:, :1], other[:, :1]).value)
    assert spread_difference(one, one).error == 0.0


def test_a_level_is_reached_between_checkpoints() -> None:
    """Along logarithms; at once where it was there; nowhere where it never is."""
    values = np.array([0.1, 0.2, 0.4])
    assert reached_at([100, 1_000, 10_000], values, 0.3) == pytest.approx(10**3.5)
    assert reached_at([100, 1_000, 10_000], values, 0.05) == 100
    assert reached_at([100, 1_000, 10_000], values, 0.5) == math.inf


def test_few_interventions_need_more_lists_by_a_ratio() -> None:
    """That is planted; without both cells nothing is said."""
    few = planted(LONG, AWARE, 5, 0.5, 0.52, 0.54, 0.6)
    many = planted(LONG, AWARE, 50, 0.5, 0.6, 0.62, 0.63)
    found = matched(dict([few, many]), rng=np.random.default_rng(0))

    assert found is not None
    assert found.level == pytest.approx(0.6, abs=0.01)
    assert found.impressions == 1_000
    assert found.earlier == pytest.approx(200)
    assert found.ratio == pytest.approx(5.0)
    assert found.low <= 5.0 + 1e-9
    assert found.high >= 5.0 - 1e-9
    assert matched(dict([few]), rng=np.random.default_rng(0)) is None

    never = planted(LONG, AWARE, 50, 0.5, 0.52, 0.53, 0.54)
    behind = matched(dict([few, never]), rng=np.random.default_rng(0))
    assert behind is not None
    assert (behind.ratio, behind.high) == (0.0, 0.0)
