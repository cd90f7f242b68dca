"""Settings: what is wrong is named, and where it was said."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from models.estimators import splits
from rankstream.configuration import counting
from rankstream.settings import SettingsError, load_settings, with_namespace

MODEL = "[models.good]\nfeatures = 3\n[models.search]\nfeatures = 46\n"


@pytest.mark.parametrize(
    ("text", "variables", "expected"),
    [
        (
            "[kafka]\nbootstraps = 'x'",
            {},
            ("kafka.bootstraps is no setting; did you mean", "FILE"),
        ),
        ("shard = 1", {}, ("shard is no setting; there is namespace, kafka, ", "FILE")),
        (
            "[delivery]\ncheckpoint_s = 1",
            {},
            ("delivery.checkpoint_s is called delivery.commit_s now", "FILE"),
        ),
        (
            "[delivery]\ncheckpoint_s = 1\n[kafka]\nfront_door_partitions = 1",
            {},
            ("called delivery.commit_s now", "called kafka.input_partitions now"),
        ),
        (
            "[limits]\nlist_masks = 0",
            {},
            ("limits.list_masks has gone: clicked ranks are always kept", "FILE"),
        ),
        (
            "[statistics]\ngroups = 1",
            {},
            ("statistics.groups must be a whole number, 2 or more; got 1", "FILE"),
        ),
        (
            "[statistics]\ngroups = 257",
            {},
            ("statistics.groups must be a whole number, 256 or less", "FILE"),
        ),
        (
            "[statistics]\nsplit_shares = [0.5, 0.5]",
            {},
            ("split_shares must be three numbers above 0 with a sum of 1", "FILE"),
        ),
        (
            "[statistics]\nsplit_shares = [0.8, 0.3, -0.1]",
            {},
            ("split_shares must be three numbers", "got [0.8, 0.3, -0.1]"),
        ),
        (
            "[statistics]\nsplit_shares = [0.6, 0.2, 0.1]",
            {},
            ("with a sum of 1",),
        ),
        (
            "[statistics]\ngroups = 5\nsplit_shares = [0.6, 0.2, 0.2]",
            {},
            ("split_shares must be left out with statistics.groups below 6", "for 5"),
        ),
        (
            "[statistics]\nreward = 'buy'\nactions = {order = 'purchase'}",
            {},
            ("reward must be 'click' or", "['click', 'purchase']", "'buy'", "FILE"),
        ),
        (
            "[statistics.actions]\na = 'd'\nb = 'c'\nc = 'b'\nd = 'a'\ne = 'click'",
            {},
            ("actions must name 3 classes", "['a', 'b', 'c', 'd']", "FILE"),
        ),
        (
            "[statistics.actions]\norder = ''",
            {},
            ("must name a class for each action; got '' for 'order'", "FILE"),
        ),
        (
            "",
            {"RANKSTREAM_STATISTICS__REWARD": "buy"},
            ("got 'buy'", "in RANKSTREAM_STATISTICS__REWARD"),
        ),
        (
            "",
            {"RANKSTREAM_KAFKA_PARTITIONS": "2"},
            ("two underscores between: RANKSTREAM_KAFKA__PARTITIONS",),
        ),
        (
            "",
            {"RANKSTREAM_KAFKA__FRONT_DOOR_PARTITIONS": "2"},
            ("called kafka.input_partitions now, in RANKSTREAM_KAFKA__FRONT",),
        ),
        (
            "[time]\nkeep_ms = 'x'",
            {},
            ("keep_ms must be a whole number; got a text", "FILE"),
        ),
        (
            "[time]\nclick_window_ms = 301\nkeep_ms = 300",
            {},
            ("time.keep_ms must be time.click_window_ms", "300", "301", "FILE"),
        ),
        (
            "[ingestion]\nsegment = ' '",
            {},
            ("ingestion.segment must name an attribute", "' '", "FILE"),
        ),
        (
            '[ingestion]\nsegment = "a\\u001fb"',
            {},
            ("ingestion.segment must name an attribute", "FILE"),
        ),
        (
            "[time]\ndisorder_ms = 301\nremember_ms = 300",
            {},
            ("time.remember_ms must be time.disorder_ms", "300", "301", "FILE"),
        ),
        (
            MODEL + "seed = 'x'",
            {},
            ("search.seed must be a whole number; got a text", "FILE"),
        ),
        (
            MODEL + "rate = 1",
            {},
            ("search.rate is no setting; there is", "FILE"),
        ),
        (MODEL + "hidden = ['x']", {}, ("models.search.hidden[", "FILE")),
        (
            "models.a = 3",
            {},
            ("models.a must be a table; got a whole", "FILE"),
        ),
        (
            "[models.a]\nseed = 1",
            {},
            ("models.a.features must be set", "FILE"),
        ),
        (
            "[kafka]\nevents_days = 2",
            {},
            ("kafka.events_days must be 3 or more, 0 or -1; got 2", "FILE"),
        ),
        (
            MODEL + "feature_names = ['a']",
            {},
            ("models.search.feature_names: names must be as many", "46; got 1", "FILE"),
        ),
        (MODEL + "kind = 'linera'", {}, ("models.search.kind must", "linera", "FILE")),
        (
            MODEL + "learner = 'pdgdd'",
            {},
            ("models.search.learner must be one of", "'pdgd'", "'pdgdd'", "FILE"),
        ),
        (
            MODEL + "options = {tau = 1}",
            {},
            ("models.search.options of pdgd must", "'biased'", "['tau']", "FILE"),
        ),
        (
            MODEL + "kind = 'neural'\nhidden = [3, 0]",
            {},
            ("models.search.hidden must be sizes of 1 or more", "[3, 0]", "FILE"),
        ),
        (
            MODEL + "hidden = [3]",
            {},
            ("models.search.hidden must name", "[3] for 'linear'", "FILE"),
        ),
        (
            "[models.huge]\nfeatures = 1_000_000_000_000",
            {},
            ("models.huge must have at most 3931", "got 1000000000000: take", "FILE"),
        ),
        (
            MODEL + "kind = 'neural'\nhidden = [2_000, 2_000]",
            {},
            ("models.search must have at most", "take fewer features", "FILE"),
        ),
        (
            "[experiments.e]\nrankers = {a = '', b = 3}",
            {},
            ("experiments.e.rankers[", "FILE"),
        ),
        ("[experiments.e.rankers]\na = ''", {}, ("experiments.e.rankers must", "FILE")),
        (
            MODEL,
            {"RANKSTREAM_MODELS__SEARCH__FEATURES": "many"},
            (
                "models.search.features must be",
                "in RANKSTREAM_MODELS__SEARCH__FEATURES",
            ),
        ),
        (
            MODEL,
            {"RANKSTREAM_KAFKA__PARTITIONS": "0", "RANKSTREAM_NAMESPACE": "shop"},
            ("must be a whole number, 1 or more; got 0; in RANKSTREAM_KAFKA__",),
        ),
        ("", {"RANKSTREAM_NAMESPACE": "a b"}, ("'a b'", "in RANKSTREAM_NAMESPACE")),
        (
            MODEL,
            {"RANKSTREAM_KAFKA__SHARDS": "1"},
            ("kafka.shards is no setting; ", "in RANKSTREAM_KAFKA__SHARDS"),
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_place(
    tmp_path: Path, text: str, variables: dict[str, str], expected: tuple[str, ...]
) -> None:
    """The whole name of the setting, and the file or the variable that it is in."""
    file = tmp_path / "shop.toml"
    file.write_text(text)
    with pytest.raises(SettingsError) as caught:
        load_settings(file, variables)

    for part in expected:
        assert part.replace("FILE", f"in {file}") in str(caught.value)


def test_a_wrong_option_is_named() -> None:
    """A namespace may come from the command line."""
    with pytest.raises(SettingsError, match="in --namespace"):
        with_namespace(load_settings(environment={}), "a b")


def test_a_list_may_be_remembered_for_no_longer_than_clicks_may_be_late() -> None:
    """Exactly as long is enough."""
    variables = {
        "RANKSTREAM_TIME__DISORDER_MS": "300",
        "RANKSTREAM_TIME__REMEMBER_MS": "300",
    }

    assert load_settings(environment=variables).time.remember_ms == 300


def test_classes_are_numbered_by_name_and_clicks_come_first() -> None:
    """Three besides clicks are allowed, and two actions may share one."""
    actions = "{order = 'purchase', buy = 'purchase', dwell = 'long', a = 'art'}"
    variables = {
        "RANKSTREAM_STATISTICS__ACTIONS": actions,
        "RANKSTREAM_STATISTICS__REWARD": "long",
    }

    found = load_settings(environment=variables).statistics

    assert found.classes() == ("click", "art", "long", "purchase")
    assert found.reward == "long"


@pytest.mark.parametrize("groups", [2, 256])
def test_groups_at_their_limits_are_taken(groups: int) -> None:
    """No fewer than two, as halves are compared; no more than a byte numbers."""
    variables = {"RANKSTREAM_STATISTICS__GROUPS": str(groups)}

    assert load_settings(environment=variables).statistics.groups == groups


def test_without_settings_every_action_is_a_click() -> None:
    """Twenty groups, and one class."""
    found = load_settings(environment={}).statistics

    assert (found.groups, found.reward, found.classes()) == (20, "click", ("click",))


@pytest.mark.parametrize("features", [3_932_000, 1_000_000_000_000])
def test_a_worker_with_a_model_too_large_ends_at_once(
    features: int, tmp_path: Path
) -> None:
    """With the status after which nobody starts it again, before it looks for Kafka."""
    file = tmp_path / "shop.toml"
    file.write_text(f"[models.huge]\nfeatures = {features}\n")
    command = [
        sys.executable,
        "-m",
        "rankstream",
        "worker",
        "--config",
        str(file),
    ]
    # Else it would wait for Kafka for ever.
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 78
    assert done.stderr.startswith("rankstream worker: models.huge must have at most")
    assert done.stdout == ""


def test_splits_have_the_bounds_and_shares_of_the_estimators(tmp_path: Path) -> None:
    """Services know no estimators, so both say them; few groups are none to split."""
    assert counting.LEAST_TO_SPLIT == splits.LEAST_TO_SPLIT
    assert splits.Shares()[:3] == counting.SPLIT_SHARES
    file = tmp_path / "settings.toml"
    file.write_text("[statistics]\ngroups = 2")
    found = load_settings(file, environment={}).statistics
    assert found.split_shares == [*counting.SPLIT_SHARES]
    told = {"RANKSTREAM_STATISTICS__SPLIT_SHARES": "[0.5, 0.25, 0.25]"}
    assert load_settings(environment=told).statistics.split_shares == [0.5, 0.25, 0.25]


@pytest.mark.parametrize(
    ("section", "reason"),
    [
        ("versions = 'promoted'\nlearner = 'dbgd'", "learner must be left out where"),
        ("versions = 'promoted'\nlearns_from = ['n']", "learns_from must be left out"),
        ("versions = 'trained'\nlearns_from_groups = [1]", "groups must be left out"),
        ("versions = 'promoted'\n[models.m.training]\nseed = 2", "'trained' only"),
        ("learns_from_groups = [20]", "each once, from 0 to 19; got [20]"),
        ("learns_from_groups = [1, 1]", "each once, from 0 to 19; got [1, 1]"),
        (f"learns_from_groups = {[*range(20)]}", "can be judged; got all 20"),
    ],
)
def test_what_a_promoted_model_and_groups_may_not_have(
    section: str, reason: str, tmp_path: Path
) -> None:
    """Nothing is learned under its name; a learner leaves groups to be judged on."""
    file = tmp_path / "shop.toml"
    file.write_text(f"[models.m]\nfeatures = 3\n{section}\n")
    with pytest.raises(SettingsError, match=re.escape(reason)):
        load_settings(file)


def test_a_promoted_model_has_no_schedule(tmp_path: Path) -> None:
    """And a learner may be kept off groups."""
    file = tmp_path / "shop.toml"
    file.write_text(
        "[models.m]\nfeatures = 3\nversions = 'promoted'\n"
        "[models.s]\nfeatures = 3\nlearns_from = ['m']\nlearns_from_groups = [3, 0]\n"
    )
    found = load_settings(file)
    assert (found.schedules, [*found.online], [*found.trained]) == ({}, ["s"], [])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"COMMIT_S": "10"}, r"less than delivery\.session_timeout_s, 10 s; got 10; "),
        (
            {"COMMIT_S": "2", "TRANSACTION_TIMEOUT_MS": "2000"},
            r"less than delivery\.transaction_timeout_ms, 2 s; got 2; ",
        ),
        ({"COMMIT_S": "0"}, r"delivery\.commit_s"),
        ({"COMMIT_S": "-1"}, r"delivery\.commit_s"),
    ],
)
def test_commits_are_within_what_brokers_wait_for(
    given: dict[str, str], said: str
) -> None:
    """Else a member would be voted out before it hears that it was."""
    given = {f"RANKSTREAM_DELIVERY__{name}": value for name, value in given.items()}
    with pytest.raises(SettingsError, match=said):
        load_settings(None, given)


@pytest.mark.parametrize(
    ("variables", "between_s"),
    [
        ({}, 5.0),
        ({"DELIVERY__COMMIT_S": "0.1"}, 0.5),
        ({"DELIVERY__COMMIT_S": "3", "DELIVERY__SESSION_TIMEOUT_S": "60"}, 5.0),
        ({"DELIVERY__COMMIT_S": "7"}, 7.0),
        ({"DELIVERY__SESSION_TIMEOUT_S": "6"}, 3.0),
        ({"DELIVERY__COMMIT_S": "4", "DELIVERY__SESSION_TIMEOUT_S": "6"}, 4.0),
        ({"DELIVERY__TRANSACTION_TIMEOUT_MS": "8000"}, 4.0),
        ({"MODELS__A__FEATURES": "1"}, 1.0),
        ({"MODELS__A__FEATURES": "1", "DELIVERY__COMMIT_S": "0.1"}, 0.1),
    ],
)
def test_commits_are_further_apart_where_only_windows_read(
    variables: dict[str, str], between_s: float
) -> None:
    """Never as far as a session or a transaction may last."""
    settings = load_settings(
        None, {f"RANKSTREAM_{name}": value for name, value in variables.items()}
    )
    assert settings.between_commits_s == pytest.approx(between_s)
