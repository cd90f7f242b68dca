"""A connection to Redis: the one module that reaches it."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

import redis
from redis.backoff import ExponentialWithJitterBackoff
from redis.retry import Retry

from rankstream.redis_scripts import DOCUMENTS, PUT_DOCUMENTS, StoreUnavailable


class RedisConnection:
    """Scripts, small documents and notifications in one Redis.

    Safe to use from several threads.

    Parameters
    ----------
    url
        Without credentials; `rediss://` for TLS.
    ca_file
        Authorities that Redis' certificate may be of, where not those of the system.
    timeout_s
        How long to wait for one answer.
    retries
        How often to ask again before a call fails.
    """

    def __init__(  # noqa: PLR0913  what a connection needs
        self,
        url: str,
        *,
        namespace: str,
        username: str,
        password: str,
        ca_file: str,
        timeout_s: float,
        retries: int,
    ) -> None:
        self.place = url.rpartition("@")[2]
        self._prefix = f"{namespace or 'rankstream'}:"
        self._client = redis.Redis.from_url(
            url,
            username=username or None,
            password=password or None,
            **({"ssl_ca_certs": ca_file} if ca_file else {}),
            socket_timeout=timeout_s,
            socket_connect_timeout=timeout_s,
            health_check_interval=15,
            retry=Retry(ExponentialWithJitterBackoff(base=0.01, cap=0.1), retries),
        )
        self._script = self._client.register_script
        self._documents = self._script(DOCUMENTS)
        self._put = self._script(PUT_DOCUMENTS)

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
        self._call(self._client.ping)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _heard(self, channel: str) -> Iterator[None]:
        """One at once, one after each burst of messages, and one each half second."""
        try:
            # redis-py leaves this method without types.
            subscription: Any = cast("Any", self._client).pubsub(
                ignore_subscribe_messages=True
            )
            with subscription as listening:
                listening.subscribe(channel)
                while True:
                    yield
                    listening.get_message(timeout=0.5)
                    while listening.get_message(timeout=0.0) is not None:
                        pass
        except redis.RedisError as error:
            raise self._unavailable(error) from error

    def _call(self, function: Any, *arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except redis.RedisError as error:
            if isinstance(error, redis.ResponseError):
                # One that was made a replica keeps its clients: ask who has the address
                # now. And one without memory keeps the buffer of a large request.
                self._client.connection_pool.disconnect(inuse_connections=False)
            raise self._unavailable(error) from error

    def _unavailable(self, error: Exception) -> StoreUnavailable:
        # Only the code of Redis' answer: its text may repeat what was sent.
        code = re.search(r"\b(?!ERR\b)[A-Z]{3,}\b", str(error))
        told = getattr(error.__context__, "reason", "") or (code[0] if code else "")
        kind = f"{type(error).__name__} {told}".strip()
        return StoreUnavailable(
            f"Redis must answer at {self.place}; {kind}: see that it runs, or "
            "correct redis.url",
            is_answered=isinstance(error, redis.ResponseError),
        )
