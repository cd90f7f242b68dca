"""`rankstream statistics` on what lies in the topic."""

import argparse
import json
import os
from collections import Counter

import pyarrow.parquet as pq
import pytest

from models.counts.definition import ClosedImpression
from models.counts.placements import UNKNOWN
from models.counts.scope_record import CONVERTED, OVERFLOWED
from rankstream.operations.answers.sources import DeployedGroups
from rankstream.operations.commands import statistics
from rankstream.operations.commands.statistics.run import run as run_statistics
from streams.statistics.keys import (
    OPEN_SET,
    OVERFLOW_SET,
    ScopeName,
    decode,
)
from streams.statistics.reader import summaries_of
from tests.models.counts.scope_values import ScopeValue
from tests.streams.statistics.statistics_records import (
    COUNTED,
    counted_record,
    logged,
    logged_row,
    scope_records,
)

ITEMS = ("a", "b", "c")
ROW = b"r" * 16
HALVES = [[0.5], [0.5], [0.0]]

RED, HATS, LONG = (
    ScopeName("red shoes", b"s" * 16, "m", 225),
    ScopeName("hats", b"s" * 16, "", 226),
    ScopeName("long", OPEN_SET, "m", 226),
)


@pytest.fixture
def records():
    """Statistics of three queries; classes 1 and 2 are long and purchase."""
    red = [
        ClosedImpression(n % 20, [2, 0], {0: [1, 2] if n < 6 else [], 2: [1]})
        for n in range(30)
    ]
    red.append(ClosedImpression(1, [2, 1], {}, UNKNOWN))
    hats = [logged([0], [1], HALVES, ROW)]
    return [
        *scope_records(RED, ScopeValue(ITEMS).take(red)),
        *scope_records(
            HATS,
            ScopeValue(ITEMS, last_ms=77, flags=OVERFLOWED).take(hats),
            {ROW: logged_row(HALVES)},
        ),
        counted_record(),
    ]


@pytest.fixture
def run(records, monkeypatch, capsys):
    """The command on these records; returns status and output."""
    monkeypatch.setattr(
        "producers.topic_reader.read_topic",
        lambda *_: ((0, 0, *record) for record in records),
    )
    # No topic of snapshots either.
    monkeypatch.setattr(DeployedGroups, "_records", [])
    monkeypatch.setenv("COLUMNS", "120")

    def command(*words):
        parser = argparse.ArgumentParser()
        statistics.add_arguments(parser)
        parser.set_defaults(config=None, namespace=None)
        status = run_statistics(parser.parse_args(words))
        return status, capsys.readouterr()

    return command


def test_show_has_every_item_and_rank_with_groups_merged(run):
    """Counts, click rate and expected exposure of each place."""
    status, printed = run("show", " Red  SHOES")
    # Clicks tell no curve, so there is no relevance.
    assert (status, "give --examination" in printed.err) == (1, True)
    assert run("show", "red shoes", "--examination", "1,0.5")[0] == 0
    cells = rows_of(printed)
    assert ["c", "1", "31", "6", "0.194", "30", "30.00"] in cells
    assert ["a", "2", "30", "6", "0.200", "0", "30.00"] in cells
    assert ["b", "2", "1", "0", "0.000", "0", "-"] in cells
    assert "│ purchase │" in printed.out.replace("┃", "│")
    assert "intervention m, era 2025-06-11 to 2025-09-08" in printed.out
    assert "25.0% of all interactions that were counted have left" in printed.out


def test_show_says_what_is_particular_about_a_scope(run, records):
    """Flags in words, each era apart; without a record of settings, by number."""
    converted = RED._replace(era=226)
    capped = RED._replace(candidate_set=OVERFLOW_SET, intervention="", era=226)
    log = [ClosedImpression(0, [0, 1], {0: [1], 2: [1]})]
    lists = [*log, ClosedImpression(0, [1])]
    long = [ClosedImpression(0, list(range(33)))]
    items = tuple(f"d{n:02}" for n in range(33))
    records.pop()
    records += [
        *scope_records(converted, ScopeValue(ITEMS, flags=CONVERTED).take(log)),
        *scope_records(capped, ScopeValue(ITEMS, is_capped=True).take(log)),
        *scope_records(LONG, ScopeValue(items, most_lists=0).take(long)),
        *scope_records(
            LONG._replace(era=227), ScopeValue(items, most_lists=1).take(lists)
        ),
    ]
    _, printed = run("show", "red shoes", "--by-scope")
    assert "converted from an earlier release: exposures are refused" in printed.out
    assert "beyond the limits on sets and interventions: only shown" in printed.out
    assert printed.out.count("era 226") == 2
    assert printed.out.count("era 225") == 1
    assert "class 2" in printed.out
    assert "have left" not in printed.out
    _, printed = run("show", "long", "--by-scope")
    assert "lists without candidates" in printed.out
    assert "some lists have more than 32 items" in printed.out
    assert "more lists, masks or exposure rows than `limits` keeps" in printed.out


def rows_of(printed):
    """Cells of all lines of tables."""
    lines = printed.out.replace("┃", "│").splitlines()
    rows = [line.split("│")[1:-1] for line in lines if "│" in line]
    return [[cell.strip() for cell in row] for row in rows]


@pytest.fixture
def several(records):
    """Red shoes in three scopes more: another era, intervention and set."""
    log = [ClosedImpression(n % 20, [0, 1], {0: [1]}) for n in range(10)]
    scopes = (
        RED._replace(era=226),
        RED._replace(intervention="v2"),
        RED._replace(candidate_set=b"\xab" * 16, intervention=""),
    )
    for name in scopes:
        flags = CONVERTED if name.intervention == "v2" else 0
        records += scope_records(name, ScopeValue(ITEMS, flags=flags).take(log))


@pytest.mark.usefixtures("several")
def test_several_scopes_are_listed_and_shown_together(run):
    """Each in a line, most shown first; the sums of all below."""
    _, printed = run("show", "red shoes")
    rows = rows_of(printed)
    days = "2025-06-11", "2025-09-08"
    assert ["737373737373", "m", "225", *days, "31", "12", "0.387"] in rows
    assert ["abababababab", "-", "225", *days, "10", "10", "1.000"] in rows
    shown = [row[5] for row in rows if row[3].startswith("2025-")]
    assert shown == ["31", "10", "10", "10"]
    # c is at the first rank of the first scope only; a in the other three, of which
    # one was converted and has no exposures.
    assert ["c", "1", "31", "6", "0.194", "30", "30.00"] in rows
    assert ["a", "1", "30", "30", "1.000", "0", "-"] in rows
    assert "61 lists, 42 clicks" in printed.out
    assert "in 1 of 4 scopes: converted from an earlier release" in printed.out
    assert "4 scopes of red shoes" in printed.out


def test_interactions_of_which_no_scope_tells_are_counted(run, records):
    """Of 75 that have not left, 31 lists were red shoes and one was hats."""
    assert "43 interactions that were counted are missing" in run("list")[1].out
    assert "are missing" not in run("show", "red shoes")[1].out
    records[:] = [each for each in records if decode(each[0])[0] != "scope"]
    status, printed = run("list")
    assert status == 1
    assert "75 interactions that were counted are missing" in printed.err
    status, printed = run("show", "hats")
    assert status == 1
    assert "1 head of a scope is missing" in printed.err


@pytest.mark.usefixtures("several")
@pytest.mark.parametrize(
    ("words", "n_lists"),
    [
        (["--intervention", "m"], 41),
        (["--intervention", "m", "--era", "226"], 10),
        (["--era", "2025-09-08"], 51),
        (["--era", "2025-09-09"], 10),
        (["--candidates", "ABAB"], 10),
        (["--candidates", "73", "--intervention", "v2"], 10),
    ],
)
def test_some_scopes_can_be_asked_for(run, words, n_lists):
    """By intervention, era and candidates; together they all must hold."""
    status, printed = run("show", "red shoes", *words)
    assert status == 0
    assert f"{n_lists} lists" in printed.out


@pytest.mark.usefixtures("several")
def test_scopes_that_are_not_there_are_named(run, records):
    """And an era that is none is refused."""
    status, printed = run("show", "red shoes", "--intervention", "v3")
    assert status == 1
    assert printed.err == (
        "none of the 4 scopes of the query 'red shoes' is of --intervention 'v3'; "
        "without it all are listed\n"
    )
    with pytest.raises(ValueError, match="--candidates must be how the hexadecimal"):
        run("show", "red shoes", "--candidates", "zz")
    with pytest.raises(ValueError, match="--era must be a number, or a day such as"):
        run("show", "red shoes", "--era", "last")
    records[:] = [one for one in records if b"counted" not in one[0]]
    with pytest.raises(ValueError, match="nothing says how long eras are"):
        run("show", "red shoes", "--era", "2025-09-09")


@pytest.mark.parametrize("words", [["show", "hats"], ["list"]])
@pytest.mark.parametrize("limit", ["0", "-3", "1.5", "many"])
def test_no_rows_cannot_be_asked_for(run, capsys, words, limit):
    """A table that shows nothing would look like one that has nothing."""
    with pytest.raises(SystemExit):
        run(*words, "--limit", limit)
    assert f"must be a whole number, 1 or more; got {limit}" in capsys.readouterr().err


@pytest.mark.usefixtures("several")
@pytest.mark.parametrize("width", [None, 120, 80, 40, 20])
def test_names_and_figures_are_whole_at_any_width(run, monkeypatch, width):
    """What --candidates and --intervention take can be copied; a pipe has no width."""
    if width is None:
        monkeypatch.delenv("COLUMNS")
    else:
        monkeypatch.setenv("COLUMNS", str(width))
    _, printed = run("show", "red shoes")
    rows = rows_of(printed)
    header = next(row for row in rows if row[0] == "candidates")
    spare = {20: (), 40: (), 80: ("from", "per list")}.get(width, ("from", "to"))
    assert {"candidates", "intervention", "era", "lists", "clicks"} <= {*header}
    assert {*spare} <= {*header}
    names = [row[:3] for row in rows if len(row) == len(header)]
    assert ["737373737373", "v2", "225"] in names
    figures = [row[-1] for row in rows if row[:2] == ["c", "1"]]
    assert figures == ["30.00"]
    if width == 80:
        assert max(map(len, printed.out.splitlines())) <= 80


def test_markup_in_names_is_text(run, records):
    """Users type queries, and services name items: none of it is a command."""
    name = ScopeName("[red]a[/] [/]", RED.candidate_set, "[/]v2\x1b[2J", 226)
    value = ScopeValue(("[/]", "[bold]b"))
    records += scope_records(name, value.take([ClosedImpression(0, [0, 1])]))
    _, listed = run("list")
    assert "[red]a[/] [/]" in listed.out
    _, printed = run("show", name.query)
    assert "[/]v2\\x1b[2J" in printed.out.replace("\n", "")
    assert "│ [/] " in printed.out
    assert "│ [bold]b " in printed.out


def test_show_of_an_unknown_query_says_so(run):
    """A query that was never shown is an error, not an empty table."""
    status, printed = run("show", "nothing")
    assert status == 1
    assert printed.err == (
        "no closed list of the query 'nothing'; lists count when their click window "
        "has passed (`statistics list`); 25.0% of all interactions that were counted "
        "have left: their era ended more than `time.keep_ms` ago\n"
    )


def test_list_has_the_most_shown_first(run):
    """Queries with their counts, in order."""
    status, printed = run("list")
    assert status == 0
    assert printed.out.index("red shoes") < printed.out.index("hats")
    assert "31" in printed.out
    assert "25.0% of all interactions that were counted have left" in printed.out


def test_columns_have_the_name_of_the_reward(run, records):
    """What is counted is not called clicks where it is something else."""
    bought = COUNTED._replace(classes=("click", "buy"), reward="buy", keep_ms=60_000)
    records[-1] = counted_record(bought)
    _, listed = run("list")
    assert "┃ buy ┃ buy per list ┃" in listed.out
    _, printed = run("show", "red shoes")
    assert "┃ buy ┃ buy rate ┃" in printed.out
    assert "31 lists, 12 places with buy" in printed.out
    assert "era 1970-01-01 03:45 to 1970-01-01 03:45" in " ".join(printed.out.split())


def test_export_has_every_counter(run, tmp_path):
    """The files add up to what was taken."""
    status, printed = run("export", str(tmp_path / "out.parquet"))
    assert (status, "give --examination" in printed.err) == (1, True)
    files = {
        path.name.removeprefix("out.").removesuffix("parquet").rstrip("."): path
        for path in tmp_path.iterdir()
    }
    tables = {name: pq.read_table(path).to_pydict() for name, path in files.items()}
    assert sum(tables[""]["shown"]) == 2 * 31 + 1
    assert sum(tables[""]["clicked"]) == 13
    assert sum(tables[""]["exposure_fixed_30"]) == 60 << 30
    assert set(tables[""]["era"]) == {225, 226}
    assert set(tables[""]["group"]) == set(range(20))
    assert sum(tables["cells"]["impressions"]) == 32
    assert sum(tables["cells"]["without_exposure"]) == 1
    assert set(tables["cells"]["last_ms"]) == {0, 77}
    assert set(tables["cells"]["flags"]) == {0, OVERFLOWED}
    assert sum(tables["click-pairs"]["clicked_together"]) == 6
    assert tables["rows"]["impressions"] == [1]
    assert tables["rows"]["policy"] == ["logged"]
    assert sum(tables["items"]["inverse_fixed_16"]) == 14 << 16
    rewards = tables["rewards"]
    assert sum(rewards["impressions"]) == 30
    assert (set(rewards["class"]), set(rewards["item"])) == ({"purchase"}, {"c"})
    assert {name: column[0] for name, column in tables["counted"].items()} == {
        "partition": 0, "interactions": 100, "watermark_ms": 1_700_000_000_000,
        "left": 25, "oldest_era": 6, "capped": 1, "clipped": 2, "without_exposure": 3,
        "groups": 20, "keep_ms": 90 * 86_400_000, "reward": "click",
        "classes": ["click", "long", "purchase"],
    }  # fmt: skip
    lists = tables["lists"]
    counted: Counter[tuple[str, str, str, int]] = Counter()
    for policy, row, items, mask, times in zip(
        *(lists[key] for key in ("policy", "row", "items", "mask", "impressions")),
        strict=True,
    ):
        counted[policy, row, "".join(items), mask] += times
    assert counted == {
        ("deterministic", "", "ca", 0): 24,
        ("deterministic", "", "ca", 3): 6,
        ("unknown", "", "cb", 0): 1,
        ("logged", ROW.hex(), "a", 1): 1,
    }


def test_cells_can_be_read_as_summaries(records):
    """Every cell comes decoded, sorted by name."""
    cells = list(summaries_of(records))
    names = [name for name, _ in cells]
    assert names == sorted(names)
    assert sum(cell.total("impressions") for _, cell in cells) == 32


def test_an_export_that_cannot_be_written_says_so_and_leaves_nothing(run, tmp_path):
    """With the file's own name, and no part of it."""
    with pytest.raises(RuntimeError, match=r"out\.parquet must be writable; No such"):
        run("export", str(tmp_path / "nowhere" / "out.parquet"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["out.parquet", "out.rows.parquet"])
@pytest.mark.parametrize("kind", ["folder", "pipe", "link"])
def test_an_export_replaces_nothing_but_files(run, tmp_path, name, kind):
    """A rename would put a file where a device was; a regular one it may replace."""
    file = tmp_path / name
    target = tmp_path / "target"
    target.touch()
    {
        "folder": file.mkdir,
        "pipe": lambda: os.mkfifo(file),
        "link": lambda: file.symlink_to(target),
    }[kind]()
    before = file.lstat()
    with pytest.raises(RuntimeError, match=rf"{name} must be a regular file or not"):
        run("export", str(tmp_path / "out.parquet"))
    assert file.lstat() == before
    assert {each.name for each in tmp_path.iterdir()} == {name, "target"}
    (tmp_path / "other.parquet").touch()
    other = str(tmp_path / "other.parquet")
    assert run("export", other, "--examination", "1,0.5")[0] == 0


@pytest.mark.parametrize("name", ["counts.csv", "counts"])
def test_the_name_of_an_export_tells_its_format(run, tmp_path, name):
    """Another suffix would name what the file is not."""
    with pytest.raises(ValueError, match=r"must end in \.parquet, or .*'counts.parq"):
        run("export", str(tmp_path / name))
    assert not list(tmp_path.iterdir())


def test_exposures_of_converted_scopes_are_not_exported(run, records, tmp_path):
    """Items left them one by one; counts stay."""
    name = HATS._replace(query="old")
    value = ScopeValue(ITEMS, flags=CONVERTED)
    scope = value.take([logged([0], [1], HALVES, ROW)])
    records += scope_records(name, scope, {ROW: logged_row(HALVES)})
    _, printed = run("export", str(tmp_path / "out.parquet"))
    assert "1 scope converted from an earlier release" in printed.out
    pairs = pq.read_table(tmp_path / "out.parquet").to_pylist()
    (old,) = [row for row in pairs if row["query"] == "old"]
    assert (old["shown"], old["clicked"]) == (1, 1)
    assert (old["expected"], old["exposure_fixed_30"]) == (None, None)
    hats = {row["item"]: row["expected"] for row in pairs if row["query"] == "hats"}
    assert hats == {"a": 0.5, "b": 0.5}
    rows = pq.read_table(tmp_path / "out.rows.parquet").to_pylist()
    assert {row["query"] for row in rows} == {"hats"}


def test_actions_are_lists_of_one_item(run):
    """With what could not show them, and what was left out."""
    status, told = run("actions", "hats", "--json")
    assert status == 0
    found = {one["action"]: one for one in json.loads(told.out)["actions"]}
    assert {name: one["estimate"] for name, one in found.items()} == {
        "a": 2.0, "b": 0.0, "c": None,
    }  # fmt: skip
    assert [found[x]["lists"] for x in ITEMS] == [1, 1, 0]
    assert [found[x]["elsewhere"] for x in ITEMS] == [0, 0, 1]
    status, told = run("actions", "--limit", "2", "--bound", "one-look")
    assert (status, "the first 2" in told.out) == (0, True)
    assert "30 lists left out, lists of several items" in told.err
    assert "1 list left out, of unknown policies" in told.err


def test_a_context_is_a_query_in_its_segment(run):
    """One that nobody asked has no action; neither has a segment without a name."""
    status, told = run("actions", "hats", "--segment", "NL")
    assert (status, told.out) == (1, "")
    assert "no closed list of one item" in told.err
    with pytest.raises(ValueError, match="a visible character"):
        run("actions", "hats", "--segment", " ")
    with pytest.raises(ValueError, match=r"--segment must go with a query.*'NL'"):
        run("actions", "--segment", "NL")
    with pytest.raises(ValueError, match=r"--confidence must lie in .* got 1\.5"):
        run("actions", "hats", "--confidence", "1.5")
