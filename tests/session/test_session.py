"""How tests are spread over processes, and held to what they may take."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from deploy.local_server import LocalServer
from deploy.process import ServerProcess, answers
from tests.session.broker_classes import SHORT_LIVED, archive, java_options
from tests.session.cases import n_cases
from tests.session.durations import Durations, Kept, above, kept, quicker
from tests.session.scheduling import next_unit
from tests.session.shared_server import shared_port

ROOT = Path(__file__).parents[2]

TESTS = """
import time, pytest

def compute(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass

def test_it_computes():
    compute(0.5)

def test_it_is_on_a_slow_machine():
    compute(0.3)

@pytest.mark.long
def test_it_computes_and_says_so():
    compute(0.5)

def test_it_waits():
    time.sleep(0.5)
"""

CONFTEST = """
from tests.session import budget
budget.TEST_CPU_S = 0.2
budget.FILE_S = 0.1

def pytest_configure(config):
    config.addinivalue_line("markers", "long: may")
    config.pluginmanager.register(budget.Budget())
    config.pluginmanager.register(budget.Summary(None))
"""


def test_the_longest_of_its_kind_comes_first() -> None:
    """And of the other kind where there is none left; what is new is short."""
    table = {
        "a": Kept(9.0, 8.0), "b": Kept(30.0, 2.0), "c": Kept(50.0, 45.0)
    }  # fmt: skip
    assert next_unit(dict.fromkeys("abcd"), table, waits=False) == "c"
    assert next_unit(dict.fromkeys(["a", "b", "d"]), table, waits=False) == "a"
    assert next_unit(dict.fromkeys("abcd"), table, waits=True) == "b"
    assert next_unit(dict.fromkeys("acd"), table, waits=True) == "c"
    assert next_unit(dict.fromkeys("bd"), table, waits=False) == "d"


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Files by their sums, tests with all their cases; the longest is first."""
    found = Durations()
    for case, seconds in (("[1]", 2.0), ("[2::x]", 3.0)):
        found.add(f"tests/a/test_b.py::test_c{case}", "setup", 1.0, 0.5)
        found.add(f"tests/a/test_b.py::test_c{case}", "call", seconds, 0.5)
    found.add("tests/a/test_d.py::test_short", "call", 0.1, 0.1)
    found.write(tmp_path / "table.csv")
    assert kept(tmp_path / "table.csv") == {
        "tests/a/test_b.py": Kept(7.0, 2.0, 1.0),
        "tests/a/test_b.py::test_c": Kept(7.0, 2.0, 1.0),
        "tests/a/test_d.py": Kept(0.1, 0.1),
    }
    assert (tmp_path / "table.csv").read_text().splitlines()[1].endswith(",3.0")
    assert [*found.by_room()] == ["tests/a"]
    assert above(found.files.items(), 5.0) == ["tests/a/test_b.py 7 s"]


def test_quick_is_what_is_short_and_waits_for_no_long_fixture() -> None:
    """A file's sum counts for nothing, and what has no row is new."""
    table = {
        "a.py": Kept(40.0, 9.0, 40.0),
        "a.py::test_long": Kept(2.0, 2.0),
        "b.py::test_first": Kept(12.0, 9.0, 11.5),
    }
    tests = ["a.py::test_long[1]", "a.py::test_short", "b.py::test_new", "c.py::test"]
    assert [*quicker(tests, table, 1.0).values()] == [False, True, False, True]
    assert all(quicker(tests, table, 20.0).values())


def test_what_computes_too_long_fails_unless_it_is_marked(tmp_path: Path) -> None:
    """Waiting is no computing; rooms and long files are told of at the end."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert "1 failed, 3 passed" in done.stdout, done.stdout
    assert "FAILED test_it.py::test_it_computes -" in done.stdout
    assert "compute for 0 s at most; this one did for 0." in done.stdout
    assert "durations by room" in done.stdout
    assert "above 0 s: test_it.py" in done.stdout
    named = "above 0 s: test_it.py::test_it_is_on_a_slow_machine computed for 0 s"
    assert named in done.stdout
    assert done.stdout.count(" computed for ") == 1


class Listening(LocalServer):
    """A server that does nothing but listen."""

    def _prepared(self) -> tuple[ServerProcess, Callable[[], bool]]:
        code = f"import socket; s = socket.create_server(('127.0.0.1', {self.port})); "
        command = [sys.executable, "-c", code + "import time; time.sleep(600)"]
        return ServerProcess(command, self.folder, "it"), lambda: answers(self.port)


def test_one_server_serves_all_who_ask_for_it(tmp_path: Path) -> None:
    """It lives until the last of them has gone."""
    ports, answered, leaves = [], [], threading.Event()

    def second() -> None:
        with shared_port(tmp_path / "it", Listening) as port:
            ports.append(port)
            leaves.wait(60)
            answered.append(answers(port))

    with shared_port(tmp_path / "it", Listening) as port:
        beside = threading.Thread(target=second)
        beside.start()
        while not ports:
            beside.join(0.02)
        threading.Timer(0.1, leaves.set).start()
    beside.join()
    assert ports == [port]
    assert answered == [True]
    assert not answers(port)
    with shared_port(tmp_path / "it", Listening) as another:
        assert answers(another)


def test_brokers_map_their_classes_where_they_were_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java that is told of a file that is not there maps not even its own."""
    monkeypatch.setenv("RANKSTREAM_CACHE", str(tmp_path))
    assert java_options() == SHORT_LIVED
    (tmp_path / "libs").mkdir()
    archive().touch()
    assert java_options() == f"{SHORT_LIVED} -XX:SharedArchiveFile={archive()}"
    assert archive().parent == tmp_path / "libs"


def test_chosen_cases_are_fewer() -> None:
    """Unless all are asked for."""
    assert n_cases(2, 5) == (5 if os.environ.get("RANKSTREAM_TEST_CASES") else 2)
