"""When features of candidates are logged."""

from rankstream.ranking.logged_sets import AGAIN_MS, LoggedSets

HASH = b"12345678"


def test_a_set_is_logged_once_an_hour_for_each_query_and_list() -> None:
    """In any order of its items; the query is named as the pipeline does."""
    logged = LoggedSets()
    assert logged.is_due("red hat", ["a", "b"], HASH, 0)
    assert not logged.is_due("red hat", ["b", "a"], HASH, AGAIN_MS - 1)
    assert logged.is_due("red hat", ["a", "c"], HASH, 1)
    assert logged.is_due("coat", ["a", "b"], HASH, 1)
    assert logged.is_due("red hat", ["a", "b"], b"another!", 1)
    assert logged.is_due("red hat", ["a", "b"], HASH, AGAIN_MS)
    assert not logged.is_due("red hat", ["a", "b"], HASH, 2 * AGAIN_MS - 1)
    # A list of an earlier time does not make the next one due.
    assert not logged.is_due("red hat", ["a", "b"], HASH, 0)


def test_a_clock_that_was_put_right_is_followed() -> None:
    """What a list of a far time logged is refused as such, and is nowhere."""
    logged = LoggedSets()
    assert logged.is_due("q", ["a"], HASH, 1_000 * AGAIN_MS)
    assert logged.is_due("q", ["a"], HASH, AGAIN_MS)
    assert not logged.is_due("q", ["a"], HASH, AGAIN_MS + 1)


def test_no_character_of_an_id_parts_ids() -> None:
    """Or one set would be taken for another one, and its features never come."""
    logged = LoggedSets()
    assert logged.is_due("q", ["a\x1fb"], HASH, 0)
    assert logged.is_due("q", ["a", "b"], HASH, 0)


def test_what_is_remembered_is_bounded() -> None:
    """What was not seen for longest is forgotten, and logged again."""
    logged = LoggedSets(most=3)
    for item in "abc":
        assert logged.is_due("q", [item], HASH, 0)
    assert not logged.is_due("q", ["a"], HASH, 1)
    assert logged.is_due("q", ["d"], HASH, 1)
    assert not logged.is_due("q", ["a"], HASH, 1)
    assert logged.is_due("q", ["b"], HASH, 1)
    assert len(logged._at_ms) == 3
