"""A token of OAUTHBEARER that lies in a file, for kafka-python."""

from kafka.net.sasl.oauth import AbstractTokenProvider

from rankstream.tls import token_in


class TokenFile(AbstractTokenProvider):  # type: ignore[misc]
    """Reads the file at each connection: whoever writes it renews the token."""

    def __init__(self, file: str) -> None:
        super().__init__()
        self._file = file

    def token(self) -> str:
        """As it is now.

        Raises
        ------
        OSError
            Where the file cannot be read; the client tries again.
        """
        return token_in(self._file)
