"""A connection to Redis: the one module that asks it anything."""

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import redis
from redis.exceptions import (
    AuthenticationError,
    NoPermissionError,
    RedisClusterException,
)
from redis.sentinel import MasterNotFoundError

from rankstream.redis_store.redis_clients import (
    FAILURES,
    Identity,
    client_of,
    pools_of,
    prefix_of,
    server_with,
)
from rankstream.redis_store.redis_scripts import (
    DOCUMENTS,
    PUT_DOCUMENTS,
    StoreUnavailable,
)


class RedisConnection:
    """Scripts, small documents and notifications in one Redis.

    Safe to use from several threads.

    Parameters
    ----------
    url
        Without credentials, in a form of `rankstream.configuration.redis_url`.
    timeout_s
        How long to wait for one answer.
    retries
        How often to ask again before a call fails.
    """

    def __init__(
        self,
        url: str,
        identity: Identity,
        *,
        namespace: str,
        timeout_s: float,
        retries: int,
    ) -> None:
        # Neither credentials nor what follows the path are printed.
        self.place = url.rpartition("@")[2].partition("?")[0]
        self._prefix = prefix_of(url, namespace)
        self._connect = partial(
            client_of, url, identity, timeout_s=timeout_s, retries=retries
        )
        self._made: Any = None
        self._making = threading.Lock()
        self._scripts: dict[str, Any] = {}
        self._documents = self._script(DOCUMENTS)
        self._put = self._script(PUT_DOCUMENTS)

    @property
    def _client(self) -> Any:
        """Made when it is first asked: that of a cluster connects at once."""
        with self._making:
            if self._made is None:
                self._made = self._connect()
            return self._made

    def _script(self, text: str) -> Callable[..., Any]:
        """A script as a function of keys and arguments."""

        def run(keys: list[str], args: list[Any]) -> Any:
            script = self._scripts.get(text)
            if script is None:
                script = self._scripts[text] = self._client.register_script(text)
            return script(keys=keys, args=args)

        return run

    def documents(self, kind: str) -> dict[str, bytes]:
        """Small documents of a kind by name; none where Redis holds something else.

        Raises
        ------
        StoreUnavailable
        """
        flat = self._call(self._documents, keys=[f"{self._prefix}{kind}"], args=[])
        pairs = zip(flat[::2], flat[1::2], strict=True)
        return {name.decode(errors="replace"): value for name, value in pairs}

    def put_documents(self, changes: Mapping[str, Mapping[str, bytes | None]]) -> None:
        """Write small documents of several kinds, all at once; None removes one.

        Raises
        ------
        StoreUnavailable
        """
        arguments: list[Any] = []
        for number, documents in enumerate(changes.values(), 1):
            for name, value in documents.items():
                verb = "remove" if value is None else "put"
                arguments += [number, verb, name, value or b""]
        keys = [f"{self._prefix}{kind}" for kind in changes]
        self._call(self._put, keys=keys, args=arguments)

    def ping(self) -> None:
        """Answer, or raise StoreUnavailable."""
        self._call("ping")

    def server_facts(self) -> tuple[dict[str, Any], float]:
        """What Redis' `INFO` says, and its clock in epoch milliseconds.

        Raises
        ------
        StoreUnavailable
        """
        server = self._call(lambda: server_with(self._client, f"{self._prefix}models"))
        seconds, micros = self._call(server.time)
        return self._call(server.info), 1e3 * seconds + 1e-3 * micros

    def close(self) -> None:
        """Close the connections."""
        if self._made is not None:
            self._made.close()

    def _heard(self, channel: str) -> Iterator[None]:
        """One at once, one after each burst of messages, and one each half second."""
        try:
            with self._client.pubsub(ignore_subscribe_messages=True) as listening:
                listening.subscribe(channel)
                while True:
                    yield
                    listening.get_message(timeout=0.5)
                    while listening.get_message(timeout=0.0) is not None:
                        pass
        except FAILURES as error:
            raise self._unavailable(error) from error

    def _call(
        self, asked: str | Callable[..., Any], *arguments: Any, **options: Any
    ) -> Any:
        """What a command of the client, by its name, or a function answers."""
        try:
            ask = getattr(self._client, asked) if isinstance(asked, str) else asked
            return ask(*arguments, **options)
        except FAILURES as error:
            if self._made is not None and isinstance(error, redis.ResponseError):
                # One that was made a replica keeps its clients: ask who has the address
                # now. And one without memory keeps the buffer of a large request.
                for pool in pools_of(self._made):
                    pool.disconnect(inuse_connections=False)
            raise self._unavailable(error) from error

    def _unavailable(self, error: Exception) -> StoreUnavailable:
        # Only the code of Redis' answer: its text may repeat what was sent.
        code = re.search(r"\b(?!ERR\b)[A-Z]{3,}\b", str(error))
        told = getattr(error.__context__, "reason", "") or (code[0] if code else "")
        kind = f"{type(error).__name__} {told}".strip()
        if (
            told == "NOPERM"
            or isinstance(error, NoPermissionError)
            or _is_denied(error)
        ):
            command = re.search(r"'([a-z|]+)' command", str(error))
            what = f"the command {command[1]}" if command else "a key or a command"
            return StoreUnavailable(
                f"Redis must allow us {what} at {self.place}; {kind}: grant what "
                "`rankstream topics acls` prints of this role",
                is_answered=True,
            )
        return StoreUnavailable(
            f"Redis must answer at {self.place}; {kind}: {_remedy(error, told)}",
            is_answered=isinstance(error, redis.ResponseError),
        )


def _is_denied(error: Exception) -> bool:
    """Whether a script was: before Redis 7 without a code."""
    return "user executing the script can't" in str(error)


def _remedy(error: Exception, told: str) -> str:
    """What to do, by what a client raises and the code that it was told."""
    if isinstance(error, AuthenticationError) or told in ("WRONGPASS", "NOAUTH"):
        return (
            "correct redis.username, and redis.password_file or "
            "RANKSTREAM_REDIS_PASSWORD; sentinels have settings of their own"
        )
    if "CERTIFICATE" in told:
        return (
            "correct redis.ca_file and redis.certificate_file, or reach it by the name "
            "in its certificate"
        )
    if isinstance(error, MasterNotFoundError):
        return (
            "see that its sentinels run, or correct redis.url, which must have the "
            "name that they watch"
        )
    if told == "SENTINEL":
        return "it is no sentinel: correct redis.url, which is redis:// for one server"
    if isinstance(error, RedisClusterException):
        return (
            "see that it runs, and as a cluster, or correct redis.url, which is "
            "redis:// for one server"
        )
    return "see that it runs, or correct redis.url"
