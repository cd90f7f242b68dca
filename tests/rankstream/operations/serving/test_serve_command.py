"""`rankstream serve` as a process: where it listens, how it ends, what it asks for."""

import http.client
import json
import os
import re
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trustme

from deploy.process import free_port
from rankstream.installation import not_installed
from rankstream.operations.serving.application import parts_of
from rankstream.operations.serving.server import configuration
from rankstream.settings import SettingsError
from tests.listening import beyond_loopback
from tests.rankstream.operations.serving.test_events import NOW_MS
from tests.served import PATIENCE_S, settings_of

AWAY = {
    "RANKSTREAM_KAFKA__BOOTSTRAP": "127.0.0.1:9",
    "RANKSTREAM_REDIS__URL": "redis://127.0.0.1:9/0",
}


@contextmanager
def running(
    *words: str, **variables: str
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command, and where it says that it is."""
    process = subprocess.Popen(
        [sys.executable, "-m", "rankstream", "serve", "--port", "0", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | AWAY | variables,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        yield process, line
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE_S)


def port_of(line: str) -> int:
    """The port that it told."""
    found = re.fullmatch(r"serving at https?://127\.0\.0\.1:(\d+)\n", line)
    assert found, line
    return int(found[1])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_without_kafka_and_ends_with_0(number: signal.Signals) -> None:
    """It is not ready then, on loopback only."""
    with running() as (process, line):
        client = http.client.HTTPConnection("127.0.0.1", port_of(line), PATIENCE_S)
        client.request("GET", "/readyz")
        answer = client.getresponse()
        assert answer.status == 503
        assert b"Kafka" in answer.read()
        event = {"impression_id": "i", "at_ms": NOW_MS, "query_id": "q", "shown": ["a"]}
        client.request("POST", "/v1/events", json.dumps(event))
        answer = client.getresponse()
        assert (answer.status, answer.getheader("retry-after")) == (503, "1")
        client.close()
        assert not beyond_loopback(process.pid)
        process.send_signal(number)
        assert process.wait(timeout=PATIENCE_S) == 0


def test_tls_is_spoken_with_the_certificate_of_the_settings(tmp_path: Path) -> None:
    """And nothing else is."""
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost", "127.0.0.1")
    for name, pem in (
        ("chain.pem", certificate.cert_chain_pems[0]),
        ("key.pem", certificate.private_key_pem),
    ):
        pem.write_to_path(tmp_path / name)
    with running(
        RANKSTREAM_SERVE__CERTIFICATE_FILE=str(tmp_path / "chain.pem"),
        RANKSTREAM_SERVE__KEY_FILE=str(tmp_path / "key.pem"),
    ) as (_, line):
        context = ssl.create_default_context()
        authority.configure_trust(context)
        client = http.client.HTTPSConnection(
            "127.0.0.1", port_of(line), timeout=PATIENCE_S, context=context
        )
        client.request("GET", "/healthz")
        assert client.getresponse().status == 200
        client.close()
        plain = http.client.HTTPConnection("127.0.0.1", port_of(line), PATIENCE_S)
        plain.request("GET", "/healthz")
        with pytest.raises((http.client.HTTPException, OSError)):
            plain.getresponse()
        plain.close()


def test_a_certificate_that_is_none_is_refused(tmp_path: Path) -> None:
    """With the names of the settings."""
    path = tmp_path / "chain.pem"
    for content in (None, "no certificate"):
        if content:
            path.write_text(content)
        with pytest.raises(SettingsError, match=r"serve\.certificate_file and"):
            configuration(parts_of(settings_of(certificate_file=str(path))))


def test_to_listen_for_others_needs_tokens() -> None:
    """Status 2 and one sentence."""
    done = subprocess.run(
        [sys.executable, "-m", "rankstream", "serve", "--host", "0.0.0.0"],  # noqa: S104
        capture_output=True, text=True, check=False, env=os.environ | AWAY,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert "serve.send_tokens_file must be set" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_port_that_is_taken_is_said_in_one_sentence() -> None:
    """Not with a traceback."""
    with running() as (_, line):
        done = subprocess.run(
            [sys.executable, "-m", "rankstream", "serve", "--port",
             str(port_of(line))],
            capture_output=True, text=True, check=False, env=os.environ | AWAY,
        )  # fmt: skip
    assert done.returncode == 2
    assert "an address must be free to listen at" in done.stderr
    assert "Traceback" not in done.stderr
    assert free_port()


def test_what_is_missing_is_of_the_extra_serve() -> None:
    """Whichever package Python missed first."""
    for package in ("starlette", "uvicorn"):
        missing = ModuleNotFoundError("No module named", name=package)
        assert str(not_installed(missing)).endswith("pip install 'rankstream[serve]'")
    missing = ModuleNotFoundError("No module named", name="aiokafka")
    assert "rankstream[serve]" in str(not_installed(missing, "serve"))
    assert "rankstream[pipeline]" in str(not_installed(missing, "worker"))
