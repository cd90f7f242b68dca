"""Programs of ours as containers run them, and the pages that they have there."""

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rankstream.operations.cli import parser_for
from rankstream.operations.commands.serve.run import _with_options
from rankstream.operations.monitoring.web import static
from rankstream.operations.serving.openapi import description
from rankstream.settings import Settings, load_settings
from streams.kafka.status.status_page import Status, _application
from streams.worker_roles import ROLES, Role
from tests.services import ServiceMissing, without

DEPLOY = Path(__file__).parents[2] / "deploy"

CONFIG = "RANKSTREAM_CONFIG"

Pages = dict[int, frozenset[str]]
"""Paths that answer, by port."""


@dataclass(frozen=True)
class Program:
    """One of our commands in a container.

    Attributes
    ----------
    words
        Behind `rankstream`.
    variables
        Its environment, but for what names the file of settings.
    config
        That file.
    """

    words: Sequence[str]
    variables: Mapping[str, str]
    config: Path

    @property
    def command(self) -> str:
        """Its verb."""
        return self.words[0]

    def settings(self) -> Settings:
        """As the command reads them.

        Raises
        ------
        SettingsError
            Where something is unknown or wrong.
        """
        assert CONFIG not in self.variables
        return load_settings(self.config, self.variables)

    def roles(self) -> list[Role]:
        """Of a worker: what it runs; of other commands none."""
        given = parser_for([*self.words]).parse_args([*self.words])
        if self.command != "worker":
            return []
        names = given.role or [
            name for name, role in ROLES.items() if role.is_needed(self.settings())
        ]
        return [ROLES[name] for name in names]

    def pages(self) -> Pages:
        """All that it answers."""
        settings = self.settings()
        given = parser_for([*self.words]).parse_args([*self.words])
        if self.command == "serve":
            asked = _with_options(settings, given).serve
            return {asked.port: frozenset(description()["paths"])}
        if self.command == "monitor":
            assert given.web
            return {given.port: frozenset(static())}
        port = settings.metrics.port
        return {port + role.metrics_port: paths_of_roles() for role in self.roles()}


def paths_of_roles() -> frozenset[str]:
    """Paths of the page that each role has, as it says itself."""
    said = _application(Status("fold"))(
        {"PATH_INFO": "/", "REQUEST_METHOD": "GET"}, lambda *_: None
    )
    return frozenset(json.loads(said[0])["paths"])


def brought(name: str) -> str:
    """A program that a package of the extra `dev` brings, or the machine's.

    Without it the test is skipped by hand, and fails in CI.
    """
    beside = Path(sys.executable).parent
    found = shutil.which(name, path=f"{beside}{os.pathsep}{os.environ['PATH']}")
    if found is None:
        missing = f"no {name} is here: install it, or the extra dev"
        without(ServiceMissing(missing), os.environ)
    return str(found)
