"""The page of estimators names what there is, and its arrays are those of the file."""

import re
from pathlib import Path

import pytest

from models.bias.registry import ESTIMATORS as CURVES
from models.estimators import item_estimates, policy_reward
from models.estimators.bandit_arrays import BanditArrays
from models.estimators.item_estimates import ItemEstimates
from models.estimators.registry import ESTIMATORS
from rankstream.operations.answers.exports.bandit_log import (
    BanditLog,
    Part,
    write_arrays,
)
from rankstream.settings import Settings
from rankstream.wire.events import Interaction
from tests import event_factory
from tests.pages import rows_below

TEXT = (Path(__file__).parents[1] / "docs" / "estimators.md").read_text("utf-8")
NAME = re.compile(r"`([^`]+)`")
PROGRAM = re.compile(r"^```python\n(.*?)```", re.MULTILINE | re.DOTALL)

VALUES = "| estimator | value | needs | corrects | wrong where |"
FITS = "| curve | fitted by | needs | wrong where |"
REASONS = "| reason or remark | when |"


def named(head: str) -> list[str]:
    """What the first cells below a head name."""
    return [name for row in rows_below(head, TEXT) for name in NAME.findall(row[0])]


def test_every_estimator_has_a_row_with_what_it_needs_and_corrects() -> None:
    """As the registry says."""
    rows = rows_below(VALUES, TEXT)
    assert named(VALUES) == [*ESTIMATORS]
    for row, entry in zip(rows, ESTIMATORS.values(), strict=True):
        assert {*filter(None, row[2].split(", "))} == entry.needs
        assert {*row[3].split(", ")} - {"none"} == entry.corrects


def test_every_curve_has_a_row() -> None:
    """In the order of the registry."""
    assert named(FITS) == [*CURVES]


def test_fields_reasons_and_weights_are_there() -> None:
    """And no others."""
    fields = [*ItemEstimates._fields, "largest_share", "effective_clicks"]
    assert {*named("| field | is |")} == {*fields} - {"clicks"}
    reasons = [
        text
        for name, text in vars(item_estimates).items()
        if name.isupper() and isinstance(text, str)
    ]
    assert sorted(named(REASONS)) == sorted(reasons)
    for name in named("| weights | w, v | the reward is |"):
        assert callable(getattr(policy_reward, name))


def test_arrays_are_those_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the file too; and its program reads it."""
    log = BanditLog(Part(), Settings().statistics)
    log.take(Interaction(event_factory.impression(), []))
    arrays, beside = log.arrays()
    monkeypatch.chdir(tmp_path)
    write_arrays(Path("log.npz"), arrays, beside)
    (program,) = PROGRAM.findall(TEXT)
    found: dict[str, dict[str, object]] = {}
    exec(program, found)  # noqa: S102  the page's own lines

    assert named("| array | shape | is |")[:2] == ["n_rounds", "n_actions"]
    heads = {
        name
        for row in rows_below("| array | shape | is |", TEXT)
        for name in NAME.findall(row[0])
    }
    assert heads == {*BanditArrays._fields, *beside}
    assert [*found["feedback"]] == [*BanditArrays._fields]
