"""Whether Redis is as rankers and the role `publish` need it."""

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from producers.readiness import shown_url, why_no_redis
from rankstream.operations.answers.installation.finding import FAILS, OK, WARNS, Finding
from rankstream.redis_store.redis_scripts import StoreUnavailable
from rankstream.settings import Settings, SettingsError
from rankstream.snapshots import store_of

LEAST = (6, 2)
"""The oldest release that we are tested with."""

POLICY = "noeviction"


@dataclass(frozen=True)
class RedisStanding:
    """How far this machine's clock is ahead of Redis', and how exact that is."""

    ahead_ms: float
    within_ms: float


def redis_standing(settings: Settings) -> tuple[RedisStanding | None, list[Finding]]:
    """Ask Redis; nothing is written. Without an answer there is no standing."""
    where = f"Redis at {shown_url(settings.redis.url)}"
    why = why_no_redis(settings.redis.url)
    if why:
        remedy = (
            "start it, or correct redis.url; rankers serve what they have meanwhile"
        )
        return None, [Finding("redis", FAILS, f"{where} must answer; {why}: {remedy}")]
    try:
        with contextlib.closing(store_of(settings, retries=0)) as store:
            sent_ms = 1e3 * time.time()
            facts, there_ms = store.server_facts()
            come_ms = 1e3 * time.time()
    except (StoreUnavailable, SettingsError) as error:
        return None, [Finding("redis", FAILS, str(error))]
    standing = RedisStanding(0.5 * (sent_ms + come_ms) - there_ms, come_ms - sent_ms)
    return standing, [*findings_of(where, facts)]


def findings_of(where: str, facts: Mapping[str, Any]) -> Iterator[Finding]:
    """What `INFO` tells of a Redis.

    Examples
    --------
    >>> told = {"redis_version": "7.2.1", "role": "slave"}
    >>> [each.state for each in findings_of("Redis", told)]
    ['ok', 'fails']
    """
    version = str(facts.get("redis_version", ""))
    yield _of_version(where, version)
    if facts.get("role", "master") != "master":
        yield Finding(
            "redis",
            FAILS,
            f"{where} must be a primary; it is a replica, which takes no writes: give "
            "redis.url an address that moves to the primary",
        )
    policy = str(facts.get("maxmemory_policy", POLICY))
    if policy != POLICY:
        limit = int(facts.get("maxmemory", 0))
        now = "" if limit else ", once maxmemory is set"
        yield Finding(
            "redis",
            WARNS,
            f"maxmemory-policy must be {POLICY}; it is {policy}, which takes snapshots "
            f"away that rankers are served{now}: CONFIG SET maxmemory-policy {POLICY}",
        )
    if facts.get("rdb_last_bgsave_status", "ok") != "ok":
        yield Finding(
            "redis",
            WARNS,
            "Redis must be able to save to its disk, or it may refuse writes; the last "
            "time it was not: see its log, and how full the disk is",
        )
    elif "aof_enabled" in facts:
        yield Finding("redis", OK, _of_persistence(facts))


def _of_version(where: str, version: str) -> Finding:
    parts = tuple(int(x) for x in version.split(".")[:2] if x.isdecimal())
    if parts and parts < LEAST:
        least = ".".join(map(str, LEAST))
        return Finding(
            "redis",
            WARNS,
            f"{where} must be of {least} or later, the oldest that is tested; it is of "
            f"{version}: upgrade it",
        )
    return Finding("redis", OK, f"{where}: {version or 'its version is not told'}")


def _of_persistence(facts: Mapping[str, Any]) -> str:
    refilled = "the role `publish` fills it again from the topics"
    if facts["aof_enabled"]:
        return f"it writes to disk what changes; where that is lost, {refilled}"
    return f"it need not keep anything on disk: {refilled}"
