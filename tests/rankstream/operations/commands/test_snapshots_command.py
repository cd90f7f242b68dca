import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from rankstream.operations.cli import main
from rankstream.snapshots import SnapshotStore, features_hash
from tests.services import RedisService
from tests.snapshot_factory import envelope

pytestmark = pytest.mark.broker


@pytest.fixture
def words(
    redis_server: RedisService, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """The options that name Redis, with three versions of two models in it."""
    monkeypatch.setenv("RANKSTREAM_REDIS__URL", redis_server.url)
    store = SnapshotStore(redis_server.url, namespace=namespace)
    store.publish_all([envelope(0), envelope(1), envelope(2)])
    store.publish(envelope(9, model="other", hidden=[2]))
    store.close()
    return ["--namespace", namespace]


@pytest.fixture
def client(redis_server: RedisService) -> Iterator[redis.Redis]:
    """Redis without any rules."""
    with redis.Redis.from_url(redis_server.url) as made:
        yield made


def test_list_names_what_is_served(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """One row for each model, or for each version of one, newest first."""
    assert main(["snapshots", "list", "--json", *words]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["model"], row["version"]) for row in rows] == [
        ("m", "0.2"),
        ("other", "0.9"),
    ]
    assert main(["snapshots", "list", "m", "--json", *words]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["version"] for row in rows] == ["0.2", "0.1", "0.0"]
    assert main(["snapshots", "list", *words]) == 0
    assert "2 snapshots" in capsys.readouterr().out


def test_show_tells_everything_about_a_version(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The served version, or a named one; a version that is not there is an error."""
    assert main(["snapshots", "show", "other", "--json", *words]) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["hidden"], row["kind"], row["sources"]) == ([2], "neural", [[0, 9]])
    assert main(["snapshots", "show", "m", "--version", "1", *words]) == 0
    assert "m 0.1" in capsys.readouterr().out
    assert main(["snapshots", "show", "m", "--version", "0.7", *words]) == 2
    assert "must be there" in capsys.readouterr().err
    assert row["parent"] == "0.8"
    long = ["--version", "0.0", "--json", *words]
    assert main(["snapshots", "show", "m", *long]) == 0
    assert json.loads(capsys.readouterr().out)["parent"] is None


@pytest.mark.parametrize(
    "action", [["list"], ["show"], ["verify"], ["follow"], ["rollback"]]
)
def test_a_name_that_is_unknown_is_refused_with_those_that_are_known(
    words: list[str],
    action: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of Redis and of the settings, where it may have no version yet."""
    config = tmp_path / "shop.toml"
    config.write_text("[models.coming]\nfeatures = 3\n")
    words = ["--config", str(config), *words]
    version = ["0.1"] if action == ["rollback"] else []
    assert main(["snapshots", *action, "nobody", *version, *words]) == 2
    said = capsys.readouterr().err
    assert "must be one of ['coming', 'm', 'other'], of Redis and the" in said
    assert "got 'nobody'" in said
    if action in (["list"], ["show"]):
        assert main(["snapshots", *action, "coming", *words]) == 1
        assert "'coming'" in capsys.readouterr().err


def test_a_misspelt_model_is_not_exported(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """It is refused as by the other actions, and the nearest name is told."""
    assert (
        main(["snapshots", "export", "othr", "--to", "onnx", "--out", "x", *words]) == 2
    )
    assert "did you mean other?" in capsys.readouterr().err


def test_tables_fit_a_hundred_columns(
    words: list[str],
    redis_server: RedisService,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whatever is in them, also in a file; names are no markup."""
    store = SnapshotStore(redis_server.url, namespace=words[1])
    names = [f"feature {number}" for number in range(40)]
    parent = {"parent": 112_000, "parent_epoch": 3}
    fields = {"n_features": 40, "feature_names": names, "epoch": 4, **parent}
    fields["features_hash"] = features_hash(names)
    store.publish(envelope(120_000, model="[red]", **fields))
    store.close()
    for columns in ("", "80"):
        monkeypatch.setenv("COLUMNS", columns)
        for action in (["list"], ["list", "m"], ["show", "[red]"]):
            assert main(["snapshots", *action, *words]) == 0
            said = capsys.readouterr().out
            assert max(map(len, said.splitlines())) <= 100
    assert "[red] 4.120000" in said
    assert "3.112000" in said


def test_a_bad_pointer_is_shown_as_text(
    words: list[str],
    client: redis.Redis,
    namespace: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Not as bytes are written in a program."""
    client.set(f"{namespace}:pointer:m", "latest")
    assert main(["snapshots", "list", *words]) == 2
    assert (
        "must be EPOCH.VERSION without leading zeros; got 'latest'"
        in capsys.readouterr().err
    )


def test_verify_finds_what_is_bad(
    words: list[str],
    client: redis.Redis,
    namespace: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Status 0 while all is good, 1 and the reason where something is not."""
    assert main(["snapshots", "verify", *words]) == 0
    assert "4 snapshots, 0 bad" in capsys.readouterr().out
    client.set(f"{namespace}:snapshot:m:0.1", envelope(1)[:-1])
    assert main(["snapshots", "verify", "--json", *words]) == 1
    verdicts = {
        (row["model"], row["version"]): row["verdict"]
        for row in json.loads(capsys.readouterr().out)
    }
    assert verdicts.pop(("m", "0.1")) == "length"
    assert set(verdicts.values()) == {"good"}


def test_an_empty_redis_is_told(words: list[str]) -> None:
    """Nothing there is status 1."""
    assert main(["snapshots", "list", "--namespace", f"{words[1]}-empty"]) == 1
    assert main(["snapshots", "verify", "--namespace", f"{words[1]}-empty"]) == 1
