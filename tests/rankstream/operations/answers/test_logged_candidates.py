"""Which candidate sets must have features, and what is said where they have none."""

from rankstream.operations.answers.statistics import (
    never_logged_label,
    sets_to_be_logged,
)
from rankstream.settings import ModelSettings
from streams.statistics.keys import OPEN_SET, OVERFLOW_SET, ScopeName

MODELS = {
    "search": ModelSettings(features=3, log_candidates=True),
    "shop@2": ModelSettings(features=3, versions="trained"),
    "plain": ModelSettings(features=3),
}


def of(candidate_set: bytes, intervention: str) -> ScopeName:
    """A scope of the query `q`."""
    return ScopeName("q", candidate_set, intervention, 1)


def test_features_are_asked_of_models_that_log_them() -> None:
    """Under their name, and that of a version; not of sets that are no sets."""
    names = [
        of(b"a" * 16, "search"),
        of(b"b" * 16, "search@1.7"),
        of(b"c" * 16, "shop@2"),
        of(b"d" * 16, "shop@2@3.1"),
        of(b"e" * 16, "plain"),
        of(b"f" * 16, "plain@1.2"),
        of(b"g" * 16, ""),
        of(b"h" * 16, "v2"),
        of(OPEN_SET, "search"),
        of(OVERFLOW_SET, "search"),
    ]
    found = sets_to_be_logged(names, MODELS)
    assert sorted(each[:1] for each in found) == [b"a", b"b", b"c", b"d"]


def test_what_was_never_logged_is_said_in_words() -> None:
    """And nothing where all is there."""
    sets = {b"a" * 16, b"b" * 16, b"c" * 16}
    assert never_logged_label(sets, sets) == ""
    assert never_logged_label(set(), set()) == ""
    told = never_logged_label(sets, {b"a" * 16, b"z" * 16})
    assert "never logged for 2 candidate sets of 3 that models" in told
