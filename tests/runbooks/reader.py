"""Somebody who follows a runbook: types what its blocks say, and compares.

Lines of a block go to one shell, which keeps its background jobs from page to page. A
plain command of ours runs in this process, as starting Python takes a second. A comment
`# ends with 1` at the end of a line says its status. `…` in a block below stands for
what differs from run to run.
"""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self
from unittest.mock import patch

import psutil

from deploy.broker import jars, java
from rankstream.operations.cli import main
from tests.documented_blocks import TREE, Block, bare, blocks_of

END = "status-of-the-last-command"
STATUS = re.compile(r"# ends with (\d+)$")
OF_A_SHELL = re.compile(r"[|>&$;*()]|^\w+=")
PATIENCE_S = 600.0
"""A busy machine is slow, and only slow; what hangs is ended."""

TOOLS = {
    "kafka-configs.sh": "kafka.admin.ConfigCommand",
    "kafka-consumer-groups.sh": (
        "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    ),
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
}
SCRIPT = '#!/bin/sh\nexec {command} "$@"\n'


class Reader:
    """A folder and a shell; a context manager.

    Parameters
    ----------
    namespaces
        What those of the pages are called here: each run has its own.
    bootstrap
        Brokers, which pages call `$KAFKA`.
    acts
        What is done where a line begins with such a program: it starts a broker.
    """

    def __init__(
        self,
        folder: Path,
        namespaces: dict[str, str],
        bootstrap: str,
        acts: Mapping[str, Callable[[], None]],
    ) -> None:
        self.folder = folder
        self._namespaces = namespaces
        self._acts = acts
        programs = folder / "programs"
        programs.mkdir()
        ours = f"env PYTHONPATH={TREE} {sys.executable} -m rankstream"
        _write_program(programs / "rankstream", ours)
        tools = jars(
            Path(__file__).with_name("kafka-tools.xml"),
            "tool-libs",
            "or leave tests/runbooks out",
        )
        for name, module in TOOLS.items():
            where = f"{jars()}/*:{tools}/*"
            _write_program(programs / name, f"{java()} -cp '{where}' {module}")
        self._shell = subprocess.Popen(
            ["/bin/bash", "--norc"],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            env=_environment(programs) | {"KAFKA": bootstrap},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        self._shell.communicate()

    def _end(self) -> None:
        """Kill the shell, and all that it started."""
        own = psutil.Process(self._shell.pid)
        for each in (*own.children(recursive=True), own):
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()

    def follow(self, page: str) -> None:
        """From its first block to its last."""
        said = ""
        for block in blocks_of(page):
            if block.reason or not block.is_fenced:
                said = ""
            elif block.file:
                text = self.named(block.text)
                (self.folder / block.file).write_text(text, encoding="utf-8")
            elif block.language == "sh":
                said = "".join(self.type(line, block.place) for line in lines_of(block))
            elif block.language == "" and said:
                compare(block, said)

    def type(self, line: str, place: str = "") -> str:
        """Type a line; what it said, in the names of the page."""
        status = STATUS.search(line)
        wanted = int(status[1]) if status else 0
        words = self.named(line.removesuffix(status[0] if status else ""))
        if act := self._acts.get(words.split()[0]):
            act()
            return ""
        if words.startswith("rankstream ") and not OF_A_SHELL.search(words):
            got, said = self._called(shlex.split(words)[1:])
        else:
            got, said = self._typed(words)
        assert got == wanted, f"{place}: {words} ended with {got}:\n{said}"
        for name, here in reversed(self._namespaces.items()):
            said = said.replace(here, name)
        return said

    def _called(self, words: list[str]) -> tuple[int, str]:
        """Status, and what was said."""
        said = io.StringIO()
        with (
            contextlib.chdir(self.folder),
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(said),
            patch.dict(os.environ, COLUMNS="100"),
        ):
            status = main(words)
        return status, said.getvalue()

    def _typed(self, words: str) -> tuple[int, str]:
        """Status, and what was said."""
        shell = self._shell
        assert shell.stdin is not None
        assert shell.stdout is not None
        shell.stdin.write(f"{words}\necho {END} $?\n")
        shell.stdin.flush()
        clock = threading.Timer(PATIENCE_S, self._end)
        clock.daemon = True
        clock.start()
        said: list[str] = []
        for line in shell.stdout:
            if END in line:
                clock.cancel()
                clock.join()
                return int(line.split()[-1]), "".join(said)
            said.append(line)
        raise AssertionError(f"{words} did not end in {PATIENCE_S} s:\n{''.join(said)}")

    def named(self, text: str) -> str:
        """With namespaces as they are called here: of options, settings and topics."""
        for name, here in self._namespaces.items():
            known = rf'(?<=--namespace ){name}\b|(?<=namespace = "){name}\b'
            text = re.sub(rf"{known}|\b{name}(?=\\?\.(?!toml|log))", here, text)
        return text


def lines_of(block: Block) -> list[str]:
    """Lines of a block, joined where one goes on."""
    lines = block.text.replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


def compare(block: Block, said: str) -> None:
    """Each line of a block stands in what was said."""
    told = bare(said)
    for line in block.text.splitlines():
        pattern = ".*?".join(map(re.escape, bare(line).split("…")))
        assert re.search(pattern, told), f"{block.place}: {line}\n{said}"


def _write_program(file: Path, command: str) -> None:
    file.write_text(SCRIPT.format(command=command))
    file.chmod(0o755)


def _environment(programs: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "COLUMNS": "100",
        "RANKSTREAM_DELIVERY__COMMIT_S": "0.1",
    }
