"""Rights at brokers that ask for them: what one is, and the command that grants it."""

import shlex
from collections.abc import Iterable
from typing import NamedTuple

TOPIC, GROUP, WRITER, CLUSTER = "topic", "group", "transactional-id", "cluster"
"""Resources, by their options of `kafka-acls.sh`."""

READ, WRITE, DESCRIBE = "Read", "Write", "Describe"
CREATE, ALTER = "Create", "Alter"
DESCRIBE_CONFIGS, ALTER_CONFIGS = "DescribeConfigs", "AlterConfigs"


class Right(NamedTuple):
    """An operation that a principal may do.

    `name` is that on the cluster; `is_prefix` says that it is of all resources whose
    names begin so.
    """

    resource: str
    name: str
    operation: str
    is_prefix: bool = False

    @property
    def refusal(self) -> str:
        """What is said where it is missing."""
        which = " that begin so" if self.is_prefix else ""
        return (
            f"{self.resource} {self.name}{which} must allow us {self.operation}; it "
            "does not"
        )


def granting(rights: Iterable[Right], principal: str, bootstrap: str) -> list[str]:
    """Commands that grant them, one for all resources of a kind with equal rights.

    Examples
    --------
    >>> both = [Right("topic", "a", "Read"), Right("topic", "a", "Write")]
    >>> print(*granting([*both, Right("group", "g", "Read")], "User:x", "b:1"))
    ... # doctest: +ELLIPSIS
    kafka-acls.sh ... --operation Read --group g kafka-acls.sh ... --operation Write ...
    """
    by_resource: dict[tuple[str, bool, str], list[str]] = {}
    for each in rights:
        place = each.resource, each.is_prefix, each.name
        by_resource.setdefault(place, []).append(each.operation)
    together: dict[tuple[str, bool, tuple[str, ...]], list[str]] = {}
    for (resource, is_prefix, name), operations in sorted(by_resource.items()):
        kind = resource, is_prefix, tuple(sorted(operations))
        together.setdefault(kind, []).append(name)
    return [
        shlex.join(_command(kind, names, principal, bootstrap))
        for kind, names in together.items()
    ]


def _command(
    kind: tuple[str, bool, tuple[str, ...]],
    names: list[str],
    principal: str,
    bootstrap: str,
) -> list[str]:
    resource, is_prefix, operations = kind
    words = ["kafka-acls.sh", "--bootstrap-server", bootstrap, "--add"]
    words += ["--allow-principal", principal]
    for operation in operations:
        words += ["--operation", operation]
    if is_prefix:
        words += ["--resource-pattern-type", "prefixed"]
    for name in names:
        words += [f"--{resource}", name] if name else [f"--{resource}"]
    return words
