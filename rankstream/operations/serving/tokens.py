"""Tokens from files, read again when a file changes."""

import hashlib
import hmac
import logging
import os
import time
from pathlib import Path

from rankstream.settings import SettingsError

LEAST_CHARACTERS = 16
"""Of a token: a shorter one can be guessed."""

MOST_BYTES = 1 << 20
LOOK_EVERY_S = 1.0

log = logging.getLogger("rankstream.serve")


class Tokens:
    """The tokens of one file, one a line; lines that begin with `#` are none.

    Raises
    ------
    SettingsError
        Where the file cannot be read, or holds no token that is long enough.
    """

    def __init__(self, setting: str, file: str) -> None:
        self._setting = setting
        self._path = Path(file)
        self._seen = self._mark()
        self._digests = self._read()
        self._looked_s = time.monotonic()

    def knows(self, token: str) -> bool:
        """Whether it is one of them; the time that it takes does not tell which."""
        self._look()
        digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        found = False
        for known in self._digests:
            found |= hmac.compare_digest(known, digest)
        return found

    def _look(self) -> None:
        now_s = time.monotonic()
        if now_s - self._looked_s < LOOK_EVERY_S:
            return
        self._looked_s = now_s
        mark = self._mark()
        if mark == self._seen:
            return
        self._seen = mark
        try:
            self._digests = self._read()
        except SettingsError as error:
            # Those that were good stay: nobody is let in who was not before.
            log.warning("event=tokens-unread reason=%s", error)
        else:
            log.info("event=tokens-read file=%s", self._path)

    def _mark(self) -> tuple[int, int, int] | None:
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _read(self) -> list[bytes]:
        try:
            with self._path.open("rb") as file:
                text = file.read(MOST_BYTES).decode("utf-8")
        except OSError as error:
            raise SettingsError(
                f"{self._setting} must be a readable file of tokens; got "
                f"{self._path}: {error.strerror}"
            ) from error
        except UnicodeDecodeError as error:
            raise SettingsError(
                f"{self._setting} must be a readable file of tokens; got "
                f"{self._path}: it is not UTF-8"
            ) from error
        lines = [line.strip() for line in text.splitlines()]
        tokens = [line for line in lines if line and not line.startswith("#")]
        if not tokens or min(map(len, tokens)) < LEAST_CHARACTERS:
            raise SettingsError(
                f"{self._setting} must hold tokens of {LEAST_CHARACTERS} characters or "
                f"more, one a line; {self._path} has none, or a shorter one: make one "
                "with `openssl rand -hex 24`"
            )
        return [hashlib.sha256(token.encode()).digest() for token in tokens]
