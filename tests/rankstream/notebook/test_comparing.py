"""Two rankers of an experiment, compared from a log that was read."""

import json
from pathlib import Path

import numpy as np
import pytest

import rankstream
from rankstream.experiments import Running
from rankstream.settings import load_settings

SHOP = """
[experiments.boost]
epoch = 1
method = "team-draft"
rankers = { old = "search", new = "" }
"""
START_MS = 1_750_000_000_000
N_LISTS, N_SESSIONS = 600, 300


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Settings, and a log in which users click what `new` puts first."""
    folder = tmp_path_factory.mktemp("boost")
    config, log = folder / "shop.toml", folder / "log.jsonl"
    config.write_text(SHOP)
    running = Running("boost", load_settings(config, {}).experiments["boost"])
    rng = np.random.default_rng(5)
    old, new = ["a", "b", "c", "d"], ["d", "c", "b", "a"]
    with log.open("wb") as lines:
        for number in range(N_LISTS):
            at_ms = START_MS + 1_000 * number
            session = f"session {number % N_SESSIONS}"
            drawn = running.combine({"old": old, "new": new}, query_id="shoes")
            lines.write(
                running.query_event(drawn, at_ms=at_ms, session=session) + b"\n"
            )
            if rng.random() < 0.5:
                click = {
                    "impression_id": drawn.impression_id,
                    "at_ms": at_ms + 500,
                    "item_id": "d",
                }
                lines.write(json.dumps(click).encode() + b"\n")
    return config, log


@pytest.fixture(scope="module")
def boost(files: tuple[Path, Path]) -> rankstream.Log:
    """The log, read with the settings of the experiment."""
    config, log = files
    return rankstream.read(log, settings=config, progress=False)


def test_the_better_one_is_preferred(boost: rankstream.Log) -> None:
    """By the method that drew the lists first, and by others beside."""
    found = boost.compare("new", "old")
    drawn = found.rows[0]
    assert (drawn.method, drawn.a, drawn.b) == ("team-draft", "new", "old")
    assert drawn.lists == N_LISTS
    assert drawn.preference > 0.2
    assert drawn.came_low > 0.0
    assert "boost, epoch 1: new against old" in repr(found)
    assert found.to_dict()["verdict"]["experiment"] == "boost"


def test_the_opposite_is_the_same_turned_around(boost: rankstream.Log) -> None:
    """Preferences change their sign, and intervals their ends."""
    one, other = (
        boost.compare("new", "old").rows[0],
        boost.compare("old", "new").rows[0],
    )
    assert other.preference == -one.preference
    assert (other.came_low, other.came_high) == (-one.came_high, -one.came_low)
    assert (other.to_come_low, other.to_come_high) == (
        -one.to_come_high, -one.to_come_low,
    )  # fmt: skip
    assert other.winner == one.winner


def test_a_method_may_be_asked_for(boost: rankstream.Log) -> None:
    """One that there is not names the nearest."""
    (row,) = boost.compare("new", "old", method="team-draft")
    assert row.method == "team-draft"
    with pytest.raises(ValueError, match="did you mean team-draft"):
        boost.compare("new", "old", method="teamdraft")


def test_rankers_of_no_experiment_are_refused(
    boost: rankstream.Log, log: rankstream.Log
) -> None:
    """With what there is."""
    with pytest.raises(ValueError, match="there is boost: "):
        boost.compare("new", "newer")
    with pytest.raises(ValueError, match="the log has none: read the log with sett"):
        log.compare("new", "old")
