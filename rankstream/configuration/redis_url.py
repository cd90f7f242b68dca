"""The forms of `redis.url`: one server, one that sentinels watch, or a cluster."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

from rankstream.configuration.section import Fault

SENTINEL, CLUSTER = "sentinel", "cluster"
PORTS = {"": 6379, SENTINEL: 26379, CLUSTER: 6379}
SCHEMES = (
    "redis", "rediss", "redis+sentinel", "rediss+sentinel", "redis+cluster",
    "rediss+cluster", "unix",
)  # fmt: skip

LAST_PORT, LAST_DB = 2**16 - 1, 2**31 - 1

_FILES, _CHECKED = "redis.{} names the file", "the certificate is always checked"
PARAMETERS = {
    "db": "the database follows the host, as in redis://HOST/0; a socket's is 0",
    "host": "it stands after the slashes",
    "port": "it stands after the host",
    "ssl_ca_certs": _FILES.format("ca_file"),
    "ssl_cert_reqs": f"{_CHECKED}; redis.ca_file names who is believed",
    "ssl_certfile": _FILES.format("certificate_file"),
    "ssl_check_hostname": f"{_CHECKED}, and so is its name",
    "ssl_keyfile": _FILES.format("key_file"),
    "ssl_password": _FILES.format("key_password_file"),
}
"""Where the settings have what a client would take from an address's end."""

CREDENTIALS = ("username", "password")


class RedisPlace(NamedTuple):
    """What an address says.

    Parameters
    ----------
    kind
        `sentinel`, `cluster`, or empty for one server.
    hosts
        Names and ports of servers, of sentinels or of nodes; none of a socket file.
    watched, db
        What sentinels call the server, and its database.
    """

    is_tls: bool
    kind: str
    hosts: list[tuple[str, int]]
    watched: str = ""
    db: int = 0


def redis_place(url: str) -> RedisPlace:
    """What an address says.

    Raises
    ------
    ValueError
        Where a port or a database is no number.

    Examples
    --------
    >>> redis_place("rediss+sentinel://a,b:5000/shop/2")
    ... # doctest: +NORMALIZE_WHITESPACE
    RedisPlace(is_tls=True, kind='sentinel', hosts=[('a', 26379), ('b', 5000)],
               watched='shop', db=2)
    """
    split = urlsplit(url)
    if split.scheme == "unix":
        return RedisPlace(is_tls=False, kind="", hosts=[])
    scheme, _, kind = split.scheme.partition("+")
    hosts = [
        _host(each, PORTS.get(kind, 0))
        for each in split.netloc.rpartition("@")[2].split(",")
        if each
    ]
    *names, db = ["", *split.path.strip("/").split("/")]
    if kind == SENTINEL and not names[1:]:
        names, db = ["", db], ""
    watched = names[-1] if kind == SENTINEL else ""
    return RedisPlace(scheme == "rediss", kind, hosts, watched, int(db or 0))


def _host(address: str, port: int) -> tuple[str, int]:
    name, colon, digits = address.rpartition(":")
    if not colon or address.endswith("]"):
        return address.strip("[]"), port
    return name.strip("[]"), int(digits)


def shown(url: str) -> str:
    """An address as it may be printed: nothing that could be a secret.

    Examples
    --------
    >>> shown("redis://h/0?name=value"), shown("redis://me:word@h/0")
    ("'redis://h/0'", 'an address with credentials')
    """
    if "@" in url:
        return "an address with credentials"
    return repr(re.split(r"[?#]", url, maxsplit=1)[0])


def redis_url_faults(url: str) -> Iterator[Fault]:
    """What an address lacks, and what it must not have."""
    setting, got = "redis.url", f"got {shown(url)}"
    try:
        split = urlsplit(url)
    except ValueError:
        yield setting, f"redis.url must be an address; {got}"
        return
    parameters = dict(parse_qsl(split.query, keep_blank_values=True))
    if "@" in url or not {*CREDENTIALS}.isdisjoint(map(str.casefold, parameters)):
        yield (
            setting,
            "redis.url must not carry credentials; set the username setting and "
            "RANKSTREAM_REDIS_PASSWORD or redis.password_file",
        )
        return
    if split.scheme not in SCHEMES:
        yield setting, f"redis.url must begin with one of {list(SCHEMES)}; {got}"
        return
    yield from _of_end(url, parameters)
    if split.scheme != "unix":
        yield from _of_place(url)
    elif split.netloc or not split.path.strip("/"):
        yield (
            setting,
            "redis.url of a socket must name its file after three slashes, as in "
            f"unix:///run/redis.sock; {got}",
        )


def _of_end(url: str, parameters: Mapping[str, str]) -> Iterator[Fault]:
    """What follows `?` or `#`: a client would take it without a word."""
    setting, end = "redis.url", url.partition("?")[2]
    if "?" not in url and "#" not in url:
        return
    named = [each for each in parameters if f"{each}=" in end]
    for name in named:
        why = PARAMETERS.get(name, "no setting has it")
        yield setting, f"redis.url must not carry the parameter {name[:40]!r}: {why}"
    if not named:
        yield (
            setting,
            "redis.url must end with its path; something follows `?` or `#`",
        )


def _of_place(url: str) -> Iterator[Fault]:
    setting, got = "redis.url", f"got {shown(url)}"
    try:
        place = redis_place(url)
    except ValueError:
        yield setting, f"redis.url must have numbers as port and database; {got}"
        return
    yield from _of_hosts(place, got)
    parts = urlsplit(url).path.strip("/").split("/")
    is_number = place.watched.isdigit() and len(parts) == 1
    if place.kind == SENTINEL and (not place.watched or is_number):
        yield (
            setting,
            "redis.url of sentinels must name what they watch, as in "
            f"redis+sentinel://HOST:26379,HOST:26379/NAME/0; {got}",
        )
    if len(parts) > (2 if place.kind == SENTINEL else 1):
        yield setting, f"redis.url must have no more path than its form has; {got}"
    if place.kind == CLUSTER and place.db:
        yield (
            setting,
            f"redis.url of a cluster must name no database, as it has one; {got}",
        )


def _of_hosts(place: RedisPlace, got: str) -> Iterator[Fault]:
    setting = "redis.url"
    if not place.hosts or not all(name for name, _ in place.hosts):
        yield setting, f"redis.url must name a host; {got}"
    elif not place.kind and len(place.hosts) > 1:
        yield (
            setting,
            "redis.url of one server must name one host; +sentinel or +cluster after "
            f"its scheme takes several; {got}",
        )
    ports = [port for _, port in place.hosts]
    if not all(1 <= port <= LAST_PORT for port in ports):
        yield setting, f"redis.url must have ports of 1 to {LAST_PORT}; {got}"
    if not 0 <= place.db <= LAST_DB:
        yield setting, f"redis.url must have a database of 0 to {LAST_DB}; {got}"
