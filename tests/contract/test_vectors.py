"""The stored vectors are what the code computes, and what an enumeration gives."""

import json
from typing import Any

import numpy as np
import pytest

from rankstream.settings import ExperimentSettings, Settings
from streams.local import LocalPipeline, local_settings
from tests.contract.cases import NOW_MS
from tests.contract.vectors import FILES, FOLDER, stored, written
from tests.interleaving_cases import LISTS_OF, Lists, as_rankings


@pytest.mark.parametrize("name", FILES)
def test_the_code_computes_what_is_stored(name: str) -> None:
    """`python -m tests.contract.vectors` writes them anew; clients rely on them."""
    assert (FOLDER / f"{name}.json").read_text() == written(name)


def test_no_other_file_is_stored() -> None:
    """A file that nobody writes anew would tell of the past."""
    assert {path.stem for path in FOLDER.glob("*")} == set(FILES)


def lists_of(case: dict[str, Any]) -> tuple[Lists, list[str]]:
    """All lists that the method of a case may show, and the items by number."""
    rankings = [case["logged_rankings"][each] for each in sorted(case["rankings"])]
    items = sorted({item for row in rankings for item in row})
    numbered = as_rankings([[items.index(item) for item in row] for row in rankings])
    length = min(case["length"], len(items))
    return LISTS_OF[case["method"]](numbered, length), items


@pytest.mark.parametrize(
    "case", stored("lists"), ids=lambda each: each["impression_id"]
)
def test_a_list_is_one_that_its_method_shows(case: dict[str, Any]) -> None:
    """With these assignments, where it has any."""
    lists, items = lists_of(case)
    shown = [items.index(item) for item in case["shown"]]
    possible = [
        each
        for probability, each in lists
        if probability > 0 and [d for d in each.shown.tolist() if d >= 0] == shown
    ]
    assert possible
    if case["assignments"] is not None:
        assert case["assignments"] in [each.assignments.tolist() for each in possible]


@pytest.mark.parametrize(
    "case",
    [each for each in stored("lists") if each["exposures"]],
    ids=lambda each: each["impression_id"],
)
def test_exposures_are_those_of_all_lists(case: dict[str, Any]) -> None:
    """P(item at rank), summed over the enumeration."""
    lists, items = lists_of(case)
    found = np.zeros((len(case["candidates"]), case["length"]))
    for probability, each in lists:
        for place, row in enumerate(each.shown.tolist()):
            if row >= 0:
                found[case["candidates"].index(items[row]), place] += probability
    assert np.abs(found - np.array(case["exposures"])).max() < 1e-12


@pytest.mark.parametrize(
    "case", stored("lists")[1::2], ids=lambda each: each["impression_id"]
)
def test_an_event_as_the_vectors_have_it_is_credited(case: dict[str, Any]) -> None:
    """With its seed; nothing about it is found wrong."""
    experiment = ExperimentSettings(
        rankers=dict.fromkeys(case["rankings"], ""),
        method=case["method"],
        length=case["length"],
        epoch=case["epoch"],
        options=case.get("options", {}),
    )
    settings = local_settings(Settings(experiments={"boost": experiment}))
    pipeline = LocalPipeline(settings, now=lambda: NOW_MS)
    event = json.dumps(case["event"] | {"seed": int(case["seed"])})
    pipeline.send("queries", event.encode())
    pipeline.end()
    (found,) = pipeline.comparisons()

    assert pipeline.counters()["applied_impressions"] == found.totals[0] == 1
    assert found.refusals == {}
    assert (found.n_foreign_seeds, found.n_without_session) == (0, 0)
