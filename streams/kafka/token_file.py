"""A token of OAUTHBEARER that lies in a file, for both libraries that stages use."""

from collections.abc import Mapping
from typing import Any

from aiokafka.abc import AbstractTokenProvider
from kafka.net.sasl import oauth

from rankstream.tls import token_in

PROVIDER = "sasl_oauth_token_provider"
"""The option of both; each library wants a class of its own."""


class TokenFile(AbstractTokenProvider):  # type: ignore[misc]
    """Reads the file at each connection: whoever writes it renews the token.

    A file that cannot be read is an OSError, as of a broker that is away: the client
    tries again.
    """

    def __init__(self, file: str) -> None:
        self.file = file

    async def token(self) -> str:
        """As it is now."""
        return token_in(self.file)


class BlockingTokenFile(oauth.AbstractTokenProvider):  # type: ignore[misc]
    """The same for kafka-python."""

    def __init__(self, file: str) -> None:
        super().__init__()
        self._file = file

    def token(self) -> str:
        """As it is now."""
        return token_in(self._file)


def blocking(options: Mapping[str, Any]) -> dict[str, Any]:
    """kafka-python's options, of those of an aiokafka client."""
    provider = options.get(PROVIDER)
    if provider is None:
        return dict(options)
    return {**options, PROVIDER: BlockingTokenFile(provider.file)}
