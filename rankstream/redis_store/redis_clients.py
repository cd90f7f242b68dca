"""Clients of Redis by the form of its address; none connects before it is asked."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import redis
from redis.backoff import ExponentialWithJitterBackoff
from redis.cluster import ClusterNode, RedisCluster
from redis.exceptions import RedisClusterException
from redis.retry import Retry
from redis.sentinel import Sentinel

from rankstream.configuration.redis_url import CLUSTER, SENTINEL, redis_place

# redis-py leaves these without types.
_Sentinel: Any = Sentinel
_Node: Any = ClusterNode

FAILURES = (redis.RedisError, RedisClusterException)
"""What a client raises where Redis does not answer as it should."""


@dataclass(frozen=True, repr=False)
class Identity:
    """Who we are for Redis and its sentinels, and whom we believe.

    Parameters
    ----------
    ca_file
        Authorities that Redis' certificate may be of, where not those of the system.
    certificate_file, key_file, key_password
        Our own certificate and its key, as PEM.
    sentinel_username, sentinel_password
        Of sentinels, which have users of their own.
    """

    username: str = ""
    password: str = ""
    ca_file: str = ""
    certificate_file: str = ""
    key_file: str = ""
    key_password: str = ""
    sentinel_username: str = ""
    sentinel_password: str = ""


def prefix_of(url: str, namespace: str) -> str:
    """What all keys of a namespace begin with.

    In a cluster it stands in braces: so all of them are in one slot, and one script
    reaches all of them.
    """
    name = namespace or "rankstream"
    return f"{{{name}}}:" if redis_place(url).kind == CLUSTER else f"{name}:"


def client_of(url: str, identity: Identity, *, timeout_s: float, retries: int) -> Any:
    """A client; that of a cluster asks one of the nodes for all of them.

    Raises
    ------
    redis.RedisError, RedisClusterException
        Where no node of a cluster answers.
    """
    place = redis_place(url)
    waiting = {
        "socket_timeout": timeout_s,
        "socket_connect_timeout": timeout_s,
        "health_check_interval": 15,
    }
    tls = _tls(identity, is_asked_for=bool(place.kind)) if place.is_tls else {}
    retry = Retry(ExponentialWithJitterBackoff(base=0.01, cap=0.1), retries)
    own = _named(identity.username, identity.password)
    common: dict[str, Any] = {**own, **waiting, **tls, "retry": retry}
    if place.kind == SENTINEL:
        theirs = _named(identity.sentinel_username, identity.sentinel_password)
        sentinels = _Sentinel(
            place.hosts, sentinel_kwargs={**theirs, **waiting, **tls}, **common
        )
        return sentinels.master_for(place.watched, db=place.db)
    if place.kind == CLUSTER:
        nodes = [_Node(*host) for host in place.hosts]
        return RedisCluster(startup_nodes=nodes, **common)
    return redis.Redis.from_url(url, **common)


def _named(username: str, password: str) -> dict[str, Any]:
    return {"username": username or None, "password": password or None}


def _tls(identity: Identity, *, is_asked_for: bool) -> dict[str, Any]:
    files = {
        "ssl_ca_certs": identity.ca_file,
        "ssl_certfile": identity.certificate_file,
        "ssl_keyfile": identity.key_file or identity.certificate_file,
        "ssl_password": identity.key_password,
    }
    given: dict[str, Any] = {name: value for name, value in files.items() if value}
    # An address of one server says it by its scheme.
    return given | {"ssl": True} if is_asked_for else given


def pools_of(client: Any) -> Iterator[Any]:
    """The pools of connections of a client: in a cluster one for each node."""
    if not isinstance(client, RedisCluster):
        yield client.connection_pool
        return
    nodes: Any = client.nodes_manager.nodes_cache
    for node in [*nodes.values()]:
        if node.redis_connection is not None:
            yield node.redis_connection.connection_pool


def server_with(client: Any, key: str) -> Any:
    """A client of the one server that has a key."""
    if not isinstance(client, RedisCluster):
        return client
    cluster: Any = client
    return cluster.get_redis_connection(cluster.get_node_from_key(key))
