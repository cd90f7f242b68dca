"""Printed commands as Kafka's own `kafka-acls.sh` takes them, and what it lists."""

import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from kafka.admin import ACL

from deploy.broker import HERE as BROKER
from tests.java_programs import libraries_of, run_java

TOOLS = Path(__file__).parents[2] / "runbooks" / "kafka-tools.xml"
INSTEAD = "or leave out the tests of rights"

RESOURCE = re.compile(
    r"ResourcePattern\(resourceType=(\w+), name=(.+), patternType=(\w+)\)"
)
ENTRY = re.compile(
    r"\(principal=(.+), host=(.+), operation=(\w+), permissionType=(\w+)\)"
)


class Listed(NamedTuple):
    """A right as `--list` says it."""

    resource: str
    name: str
    pattern: str
    principal: str
    host: str
    operation: str
    permission: str


def of_acl(acl: ACL) -> Listed:
    """The same of an ACL of the Python client."""
    on = acl.resource_pattern
    return Listed(
        on.resource_type.name, on.resource_name, on.pattern_type.name,
        acl.principal, acl.host, acl.operation.name, acl.permission_type.name,
    )  # fmt: skip


def granted_by_kafka(
    commands: Iterable[str], bootstrap: str, config: Path, folder: Path
) -> set[Listed]:
    """Run commands, each with `--command-config`, and `--list`; all that is listed."""
    calls = [shlex.split(each) for each in commands]
    assert {program for program, *_ in calls} == {"kafka-acls.sh"}
    calls.append(["kafka-acls.sh", "--bootstrap-server", bootstrap, "--list"])
    file = folder / "calls"
    with file.open("w") as lines:
        for _, *words in calls:
            print(*words, "--command-config", config, "", sep="\n", file=lines)
    libraries = [
        libraries_of(BROKER / "pom.xml", "libs", INSTEAD),
        libraries_of(TOOLS, "tool-libs", INSTEAD),
    ]
    program = Path(__file__).with_name("Acls.java")
    said = run_java(program, libraries, str(file), instead=INSTEAD)
    return set(_listed(said.split("\f")[-2]))


def _listed(said: str) -> Iterable[Listed]:
    resource: tuple[str, ...] = ()
    for line in said.splitlines():
        if found := RESOURCE.search(line):
            resource = found.groups()
        elif found := ENTRY.search(line):
            yield Listed(*resource, *found.groups())
