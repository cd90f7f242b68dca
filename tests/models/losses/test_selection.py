"""One of several is chosen, with how sure that is."""

import numpy as np
import pytest

from models.losses.selection import best_setting, select


def test_the_best_is_chosen_and_others_are_behind_it() -> None:
    """By shares of queries, of any scale; a query without a share counts nothing."""
    shares = np.array([3.0, 1.0, 0.0])
    candidates = {
        "low": np.array([1.0, 1.0, 99.0]),
        "high": np.array([2.0, 1.0, 0.0]),
        "level": np.array([0.0, 6.5, 0.0]),
    }
    found = select(candidates, shares)

    assert found.chosen == "high"
    assert found.names == ("low", "high", "level")
    assert found.values.tolist() == [1.0, 1.75, 1.625]
    assert found.behind.tolist() == [0.75, 0.0, 0.125]
    # Two queries: (3/4 (2 - 7/4))^2 + (1/4 (1 - 7/4))^2, times 2.
    assert found.errors[1] == pytest.approx(np.sqrt(2.0 * 2.0) * 0.1875)
    assert found.behind_errors[1] == 0.0
    assert found.level(1.0) == ("high", "level")
    assert found.level(0.0) == ("high",)


def test_the_first_of_equal_ones_is_chosen() -> None:
    """So that the default stays where nothing is better."""
    same = np.array([0.5, 0.25])
    found = select({"default": same, "other": same.copy()}, np.ones(2))

    assert found.chosen == "default"
    assert found.level() == ("default", "other")


def test_one_query_has_no_error() -> None:
    """It is not said to be 0, and nobody is said to be worse for sure."""
    found = select({"one": np.ones(1), "two": np.zeros(1)}, np.ones(1))

    assert np.isnan(found.errors).all()
    assert found.level() == ("one", "two")


def test_settings_are_tried_one_after_another() -> None:
    """And those that came to nothing are left out."""
    tried = []

    def worths_of(rate: float) -> np.ndarray | None:
        tried.append(rate)
        return None if rate > 1.0 else np.array([rate, rate])

    rates = {"slow": 0.1, "fast": 0.9, "wild": 9.0}
    rate, found = best_setting(rates, worths_of, np.ones(2))

    assert (rate, found.chosen, found.names) == (0.9, "fast", ("slow", "fast"))
    assert tried == [0.1, 0.9, 9.0]


def test_what_cannot_be_compared_is_refused() -> None:
    """Each sentence says what is wrong."""
    ones = np.ones(2)
    for shares in ([0.0, 0.0], [2.0, -1.0], [np.nan, 1.0], [np.inf, 1.0]):
        with pytest.raises(ValueError, match="shares of queries must be finite"):
            select({"one": ones}, np.array(shares))
    with pytest.raises(ValueError, match="candidates to select from; got none"):
        select({}, ones)
    with pytest.raises(ValueError, match=r"on the same queries; got \[1, 2\]"):
        select({"one": ones, "two": ones[:1]}, ones)
    with pytest.raises(ValueError, match="valued on 3 queries; got 2"):
        select({"one": ones}, np.ones(3))
    with pytest.raises(ValueError, match="must be finite; got others of 'two'"):
        select({"one": ones, "two": np.array([1.0, np.nan])}, ones)


def test_equal_rankers_are_equal_to_the_bit() -> None:
    """Whatever stands between them: the first is chosen, and none is behind."""
    rng = np.random.default_rng(8)
    for n in range(2, 40):
        one, worse = rng.random(n), rng.random(n) - 1.0
        names = ["a", "b", "c", "d", "e"]
        worths = [worse, one, worse, one, one]
        found = select(dict(zip(names, worths, strict=True)), rng.random(n))

        assert found.chosen == "b"
        assert found.behind[[1, 3, 4]].tolist() == [0.0, 0.0, 0.0]
