"""Rows of Open Bandit data as lists of one item; real ones against a recount."""

import base64
import json
from collections import Counter

import numpy as np
import pytest

from producers.formats.obd import read_obd
from producers.formats.registry import files_of, read_events
from producers.formats.source_file import FileUnreadable
from rankstream.operations.cli import main
from rankstream.wire.topics import CLICKS, QUERIES
from streams.statistics.reader import Statistics
from tests.producers.formats.bandit_rows import BanditRow

HEAD = (
    ",timestamp,item_id,position,click,propensity_score,user_feature_0,user_feature_1"
)
AT = "2019-11-24 00:01:03.979311+00:00"
SECOND = f"0,{AT},7,2,1,0.25,aa,bb"


def written(folder, *rows, policy="bts", items=("3", "7", "9", "11"), head=HEAD):
    """A file of rows with its items beside it."""
    place = folder / policy / "men"
    place.mkdir(parents=True)
    lines = [",item_id,item_feature_0", *(f"{i},{x},0.5" for i, x in enumerate(items))]
    (place / "item_context.csv").write_text("\n".join(lines) + "\n")
    (place / "men.csv").write_text("\n".join([head, *rows]) + "\n")
    return place / "men.csv"


def test_a_row_becomes_a_list_of_one_item_and_its_click(tmp_path):
    """Its place is in the query; what the policy did with other items is unknown."""
    shown, click = read_obd(written(tmp_path, SECOND))

    assert (shown.kind, shown.at_ms) == (QUERIES, 1_574_553_663_979)
    assert json.loads(shown.value) == {
        "impression_id": "bts-men-0",
        "query_id": "men/2",
        "at_ms": 1_574_553_663_979,
        "intervention": "bts",
        "policy": "unknown",
        "shown": ["7"],
        "candidates": ["3", "7", "9", "11"],
        "attributes": {"propensity": 0.25, "position": 2, "context": ["aa", "bb"]},
    }
    assert (click.kind, click.at_ms) == (CLICKS, 1_574_553_664_979)
    assert json.loads(click.value) == {
        "impression_id": "bts-men-0",
        "query_id": "men/2",
        "at_ms": 1_574_553_664_979,
        "item_id": "7",
        "position": 1,
    }


def test_placements_of_the_uniform_policy_are_those_of_all_items(tmp_path):
    """Each candidate alike: nothing else is known of any policy."""
    (event,) = read_obd(
        written(tmp_path, SECOND.replace(",1,0.25", ",0,0.25"), policy="random")
    )
    fields = json.loads(event.value)
    found = np.frombuffer(base64.b64decode(fields["exposures"]), "<f4")

    assert fields["policy"] == "logged"
    np.testing.assert_array_equal(found, np.full(4, 0.25, np.float32))


def test_the_column_may_have_the_name_of_the_description(tmp_path):
    """`action_prob`, as the data set's page calls it."""
    head = HEAD.replace("propensity_score", "action_prob")
    shown, _ = read_obd(written(tmp_path, SECOND, head=head))
    assert json.loads(shown.value)["attributes"]["propensity"] == 0.25


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (SECOND.replace(",7,2,", ",8,2,"), "item_id must be one of item_context.csv"),
        (SECOND.replace(",7,2,", ",7,4,"), "position must be 1 to 3; got 4"),
        (SECOND.replace(",7,2,", ",7,left,"), "invalid literal"),
        (SECOND.replace("0.25", "0"), "propensity must lie in"),
        (SECOND.replace("0.25", "nan"), "propensity must lie in"),
        (SECOND.replace("0.25", "1.5"), "propensity must lie in"),
        (SECOND.replace(",1,0.25", ",2,0.25"), "click must be 0 or 1; got '2'"),
        (SECOND.replace("+00:00", ""), "timestamp must have a zone"),
        (SECOND.replace(AT, "yesterday"), "Invalid isoformat"),
        (f"0,{AT},7", "must be one shown item"),
    ],
)
def test_a_row_that_is_none_is_named(row, reason, tmp_path):
    """File, line and reason."""
    path = written(tmp_path, SECOND, row)
    with pytest.raises(FileUnreadable, match=f"{reason}.*men.csv:3"):
        list(read_obd(path))


def test_a_missing_column_is_named(tmp_path):
    """As a row cannot be read without it."""
    path = written(tmp_path, SECOND, head=HEAD.replace("click", "clicks"))
    with pytest.raises(FileUnreadable, match="column 'click' is missing"):
        list(read_obd(path))


def test_another_propensity_than_that_of_the_uniform_policy_is_refused(tmp_path):
    """As the placements of all items would be wrong."""
    path = written(tmp_path, SECOND.replace("0.25", "0.5"), policy="random")
    with pytest.raises(FileUnreadable, match=r"must be 1 / 4; got 0\.5"):
        list(read_obd(path))


def test_items_must_lie_beside_the_rows(tmp_path):
    """Nothing else says which items were candidates."""
    path = written(tmp_path, SECOND)
    path.with_name("item_context.csv").unlink()
    with pytest.raises(FileUnreadable, match=r"item_context.csv must lie beside it"):
        list(read_obd(path))


def test_a_folder_gives_its_rows_and_passes_items_over(tmp_path):
    """As it is downloaded."""
    written(tmp_path, SECOND)
    assert len(list(read_events(files_of([tmp_path]), form="obd"))) == 2


@pytest.mark.parametrize(("row", "status"), [(SECOND, 0), (f"0,{AT},7", 1)])
def test_files_can_be_judged_before_they_are_sent(row, status, tmp_path, capsys):
    """As other formats."""
    path = written(tmp_path, row)
    assert main(["validate", str(path), "--format", "obd", "--json"]) == status
    checks = json.loads(capsys.readouterr().out)["checks"]
    assert all(check["status"] == "PASS" for check in checks) == (status == 0)


Counts = Counter[tuple[str, str, str]]


def recount(rows: list[BanditRow]) -> tuple[Counts, Counts, Counts]:
    """Shown, clicked and sums of 1 / p over clicks, row by row."""
    shown, clicked, inverse = Counts(), Counts(), Counts()
    for row in rows:
        place = row.policy, row.query, row.item
        shown[place] += 1
        if row.clicked:
            clicked[place] += 1
            if row.policy == "random":
                # As the log holds it.
                inverse[place] += round(2**16 / float(np.float32(row.propensity)))
    return shown, clicked, inverse


def test_counts_of_real_rows_equal_an_independent_recount(
    bandit_statistics: Statistics, bandit_rows: list[BanditRow]
) -> None:
    """By policy, campaign and place, and item; all 20,000 rows, 115 clicks."""
    shown, clicked, inverse = Counts(), Counts(), Counts()
    for name in bandit_statistics.names():
        cell = bandit_statistics.cell(name)
        for item, rank, n_shown, n_clicked in cell.pairs[:, :4].tolist():
            place = (name.intervention, name.query, cell.items[item])
            shown[place] += n_shown
            clicked[place] += n_clicked
            assert rank == 1
        for item, _, _, number, *_ in cell.sums.tolist():
            inverse[name.intervention, name.query, cell.items[item]] += number
    by_hand = recount(bandit_rows)

    assert (+shown, +clicked) == by_hand[:2]
    assert +inverse == by_hand[2]
    assert (shown.total(), clicked.total()) == (20_000, 115)


def test_expected_placements_are_known_of_the_uniform_policy_alone(
    bandit_statistics: Statistics,
) -> None:
    """Each of its lists expects 1 / n of each item; other lists have none."""
    for chunk in bandit_statistics.columns():
        is_uniform = np.array([name.intervention == "random" for name in chunk.names])
        n_items = np.array([len(items) for items in chunk.items])
        cells = {(s, g): (n, none) for s, g, n, *_, none, _ in chunk.cells.tolist()}
        rows = (chunk.scope.tolist(), chunk.group.tolist(), chunk.expected.tolist())
        for scope, group, expected in zip(*rows, strict=True):
            n, without = cells[scope, group]
            if is_uniform[scope]:
                assert without == 0
                assert expected == pytest.approx(n / n_items[scope], rel=1e-7)
            else:
                assert (without, expected) == (n, 0.0)


def test_real_rows_come_back_as_arrays(
    bandit_export: dict[str, np.ndarray], bandit_rows: list[BanditRow]
) -> None:
    """In full precision, with places from 0, and users' features as columns."""
    found, names = bandit_export, bandit_export["interventions"]
    columns = (found[name] for name in ("action", "position", "reward", "pscore"))
    policies = names[found["intervention"]]
    exported = Counter(zip(policies, *(x.tolist() for x in columns), strict=True))

    assert exported == Counter(
        (row.policy, int(row.item), int(row.query[-1]) - 1, row.clicked, row.propensity)
        for row in bandit_rows
    )
    assert found["items"].tolist() == [str(number) for number in range(34)]
    assert found["context"].shape == (20_000, 22)
    assert {*np.unique(found["context"]).tolist()} == {0.0, 1.0}
