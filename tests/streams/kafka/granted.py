"""Rights as printed commands grant them: `kafka-acls.sh` without its JVM."""

import argparse
import itertools
import shlex
from collections.abc import Iterable, Iterator

import redis
from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourceType,
)

OPERATIONS = {
    "Alter": ACLOperation.ALTER,
    "AlterConfigs": ACLOperation.ALTER_CONFIGS,
    "Create": ACLOperation.CREATE,
    "Describe": ACLOperation.DESCRIBE,
    "DescribeConfigs": ACLOperation.DESCRIBE_CONFIGS,
    "Read": ACLOperation.READ,
    "Write": ACLOperation.WRITE,
}
RESOURCES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
}
CLUSTER = ResourcePattern(ResourceType.CLUSTER, "kafka-cluster")


def _parser() -> argparse.ArgumentParser:
    """The options of `kafka-acls.sh` that are printed, and no others."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--bootstrap-server", required=True)
    parser.add_argument("--add", action="store_true", required=True)
    parser.add_argument("--allow-principal", required=True)
    parser.add_argument("--operation", action="append", required=True)
    parser.add_argument(
        "--resource-pattern-type", choices=("literal", "prefixed"), default="literal"
    )
    parser.add_argument("--cluster", action="store_true")
    for resource in RESOURCES:
        parser.add_argument(f"--{resource}", action="append", default=[])
    return parser


def acls_of(command: str) -> Iterator[ACL]:
    """What a call of `kafka-acls.sh` adds."""
    program, *words = shlex.split(command)
    assert program == "kafka-acls.sh"
    given = _parser().parse_args(words)
    pattern = ACLResourcePatternType[given.resource_pattern_type.upper()]
    patterns = [
        ResourcePattern(kind, name, pattern)
        for resource, kind in RESOURCES.items()
        for name in getattr(given, resource.replace("-", "_"))
    ] + [CLUSTER] * given.cluster
    for operation, each in itertools.product(given.operation, patterns):
        yield ACL(
            given.allow_principal, "*", OPERATIONS[operation],
            ACLPermissionType.ALLOW, each,
        )  # fmt: skip


def grant(admin: KafkaAdminClient, commands: Iterable[str]) -> None:
    """Have all of them done."""
    said = admin.create_acls([acl for each in commands for acl in acls_of(each)])
    assert not said["failed"], said


def revoke(admin: KafkaAdminClient, commands: Iterable[str]) -> None:
    """Take back what they granted, which is there."""
    filters = [
        ACLFilter(
            x.principal, x.host, x.operation, x.permission_type, x.resource_pattern
        )
        for each in commands
        for x in acls_of(each)
    ]
    for _, deleted, error in admin.delete_acls(filters):
        assert len(deleted) == 1, error


def add_redis_user(client: redis.Redis, command: str, password: str) -> None:
    """Have a printed `ACL SETUSER` done, with a password."""
    client.execute_command(*shlex.split(command), f">{password}")
