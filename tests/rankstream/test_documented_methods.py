"""Tables of methods, learners and formats in the docs are those of the catalogues."""

import re
from pathlib import Path

from models.interleaving.registry import METHODS, method_of
from models.learners.registry import LEARNERS
from producers.formats.registry import CATALOGUE
from rankstream.ranking.methods import DRAWN

DOCS = Path(__file__).parents[2] / "docs"
NAME = re.compile(r"`([\w-]+)`")


def rows_of(page: str, head: str) -> dict[str, list[str]]:
    """The cells of each row of the table that begins so, by each name in its first."""
    text = (DOCS / page).read_text(encoding="utf-8")
    table = text[text.index(f"| {head} |") :].partition("\n\n")[0]
    found: dict[str, list[str]] = {}
    for line in table.splitlines()[2:]:
        first, *rest = [cell.strip() for cell in line.split("|")[1:-1]]
        found |= dict.fromkeys(NAME.findall(first), rest)
    return found


def test_the_table_of_methods_is_that_of_the_catalogue() -> None:
    """Each once, with how many rankers it takes, and whether services can draw it."""
    rows = rows_of("online-evaluation.md", "method")

    assert sorted(rows) == sorted(METHODS)
    for name, (rankers, decides, *_) in rows.items():
        is_for_two = method_of(name).traits.is_for_two
        assert rankers == ("two" if is_for_two else "any number"), name
        assert ("in process only" in decides) == (name not in DRAWN), name


def test_click_rates_are_documented_for_methods_with_exact_exposures() -> None:
    """And how many rankers they take where that is not any number."""
    text = (DOCS / "online-evaluation.md").read_text(encoding="utf-8")
    row = next(line for line in text.splitlines() if "| `counterfactual:M" in line)
    _, _, rankers, estimates, *_ = row.split("|")
    exact = {name: method_of(name).traits.exact_up_to for name in METHODS}

    listed = set(NAME.findall(estimates)) & set(METHODS)
    assert listed == {name for name, most in exact.items() if most}
    assert set(NAME.findall(rankers)) == {n for n, most in exact.items() if most == 2}


def test_the_table_of_learners_is_that_of_the_catalogue() -> None:
    """Each once, with its options and the lists that it learns from."""
    rows = rows_of("online-learning.md", "`learner`")

    assert sorted(rows) == sorted(LEARNERS)
    for name, (lists, options, *_) in rows.items():
        entry = LEARNERS[name]
        assert set(NAME.findall(options)) == set(entry.options), name
        assert set(NAME.findall(lists)) <= entry.learner.policies, name
        says = "features of all candidates" in lists
        assert says == entry.learner.needs_candidates, name


def test_the_table_of_formats_is_that_of_the_catalogue() -> None:
    """Each once, with the endings of its files."""
    rows = rows_of("events.md", "format")

    said = {name: re.findall(r"`(\.\w+)`", row[0]) for name, row in rows.items()}
    assert said == {each.name: list(each.endings) for each in CATALOGUE}
