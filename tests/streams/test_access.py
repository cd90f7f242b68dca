"""Rights of roles: they follow from the tables of stages and roles."""

import json
import shlex

import msgspec
import pytest

from rankstream.operations.answers.installation.access import access
from rankstream.operations.cli import main
from rankstream.redis_store.redis_access import USES, commands_of
from rankstream.settings import Settings, SourceSettings
from rankstream.wire.rights import (
    ALTER,
    CREATE,
    DESCRIBE,
    GROUP,
    READ,
    TOPIC,
    WRITE,
    WRITER,
    Right,
)
from streams.access import PROGRAMS, _least, rights_of
from streams.topology import STAGES, topics_of
from streams.worker_roles import ROLES

SHOP = Settings(namespace="shop")
OWNERS = {kind.role for kind in STAGES}


def names(role: str, operation: str) -> set[str]:
    """Topics without namespace on which a role may do it."""
    return {
        each.name.removeprefix("shop.")
        for each in rights_of(role, SHOP)
        if (each.resource, each.operation) == (TOPIC, operation)
    }


def test_stages_may_read_their_source_and_write_their_outputs_and_states() -> None:
    """Nothing else."""
    for role in OWNERS:
        kinds = [kind for kind in STAGES if kind.role == role]
        states = {topic for kind in kinds for topic in kind.state_topics}
        outputs = {topic for kind in kinds for topic in kind.outputs}
        assert names(role, READ) == {kind.source for kind in kinds} | states
        assert names(role, WRITE) == outputs | states


def test_who_has_a_group_or_transactions_is_known_by_name() -> None:
    """A prefix of transactions is one stage's alone."""
    prefixes = set()
    for role in OWNERS:
        found = rights_of(role, SHOP)
        assert Right(GROUP, f"shop.rankstream-{role}", READ) in found
        prefixes |= {each.name for each in found if each.resource == WRITER}
    assert len(prefixes) == len(STAGES)
    assert not any(a != b and a.startswith(b) for a in prefixes for b in prefixes)


def test_transactions_are_granted_by_their_beginning() -> None:
    """Of stages: there is one for each partition; also in the command."""
    writers = [each for each in rights_of("fold", SHOP) if each.resource == WRITER]
    assert writers
    assert all(each.is_prefix for each in writers)
    (found,) = access(SHOP, ["fold"], "User:x")
    said = [each for each in found.commands if f"--{WRITER}" in each]
    assert said
    assert all("--resource-pattern-type prefixed" in each for each in said)
    others = [each for each in found.commands if each not in said]
    assert not any("prefixed" in each for each in others)


def test_operators_have_the_transactions_of_all_roles() -> None:
    """As they clean up after each of them."""
    operated = {x for x in rights_of("operate", SHOP) if x.resource == WRITER}
    for name, role in ROLES.items():
        if role.is_needed(SHOP):
            own = {each for each in rights_of(name, SHOP) if each.resource == WRITER}
            assert own <= operated, name


def test_who_reads_what_is_not_ours_has_a_group_too() -> None:
    """Though no stage is its own."""
    source = SourceSettings(topic="ubi.events", format="ubi")
    shop = msgspec.structs.replace(SHOP, sources={"ubi": source})
    assert Right(GROUP, "shop.rankstream-adapt", READ) in rights_of("adapt", shop)


def test_who_may_only_create_must_be_allowed_to_describe_too() -> None:
    """Reading, writing and altering have it with them; creating has not."""
    for other, n_left in ((READ, 1), (WRITE, 1), (ALTER, 1), (CREATE, 2)):
        both = [Right(TOPIC, "a", DESCRIBE), Right(TOPIC, "a", other)]
        assert len([*_least(both)]) == n_left


def test_nobody_but_operators_may_change_topics() -> None:
    """And they may do so with all."""
    every = {topic.name for topic in topics_of(SHOP.kafka)}
    for role in (*ROLES, *PROGRAMS):
        changed = names(role, "Create") | names(role, "Alter")
        assert changed == (every if role == "operate" else set())


def test_an_unknown_role_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """With those that there are."""
    assert main(["topics", "acls", "--role", "folder"]) == 2
    said = capsys.readouterr().err
    assert "a role must be one of ingest, fold" in said
    assert "decide, serve, rank, feed, monitor, operate; got 'folder'" in said
    assert main(["topics", "acls", "--role", "flod"]) == 2
    assert "got 'flod': did you mean fold?" in capsys.readouterr().err


def test_a_principal_that_names_nobody_is_refused_and_everybody_warned_of(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One user called `{rolle}` would be made in silence."""
    words = ["topics", "acls", "--principal"]
    assert main([*words, "shop-{rolle}"]) == 2
    assert "no braces but {role}; got 'shop-{rolle}'" in capsys.readouterr().err
    assert main([*words, "*"]) == 0
    assert "warning: User:* is everybody" in capsys.readouterr().err
    assert main([*words, "{role}"]) == 0
    assert not capsys.readouterr().err


def test_the_command_prints_what_the_answer_has(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As commands and as JSON; the name of the principal may have that of the role."""
    words = ["topics", "acls", "--namespace", "shop", "--role", "publish"]
    words += ["--principal", "shop-{role}"]
    (found,) = access(SHOP, ["publish"], "shop-{role}")
    assert found.principal == "User:shop-publish"
    assert main(words) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[1:-1] == [*found.commands, found.redis]
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [found.to_dict()]


def test_one_user_of_several_roles_gets_one_line_in_redis(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A second line of that user would take away what the first one gave."""
    words = ["topics", "acls", "--namespace", "shop", "--principal", "shop"]
    assert main(words) == 0
    (line,) = (
        line for line in capsys.readouterr().out.splitlines() if "SETUSER" in line
    )
    every = {f"+{each}" for use in USES.values() for each in commands_of(use)}
    assert {x for x in shlex.split(line) if x.startswith("+")} == every
    assert "'&shop:pointer:*'" in line
    assert {each.redis for each in access(SHOP, principal="shop")} == {line, ""}
    assert main([*words[:-1], "shop-{role}"]) == 0
    assert capsys.readouterr().out.count("SETUSER") == len(
        [each for each in access(SHOP, principal="shop-{role}") if each.redis]
    )
