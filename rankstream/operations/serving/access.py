"""Who may ask: hosts, origins, tokens, and how often."""

import ipaddress
from http import HTTPStatus
from typing import NamedTuple

from rankstream.configuration.serve import is_loopback
from rankstream.operations.serving.calls import Call
from rankstream.operations.serving.http.limits import Rates
from rankstream.operations.serving.problems import Problem
from rankstream.operations.serving.tokens import Tokens
from rankstream.settings import ServeSettings

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})

SEND, RANK, CLICK, ANY, NOBODY = "send", "rank", "click", "any", ""
"""What a path asks a token for: `CLICK` may be open, `ANY` takes every token."""

FOR_PAGES = (
    (b"access-control-allow-methods", b"POST"),
    (b"access-control-allow-headers", b"authorization, content-type"),
    (b"access-control-max-age", b"600"),
)


class Asking(NamedTuple):
    """Who asks: the address, and the page where a script does."""

    address: str
    origin: str


class Access:
    """The rules of one server.

    Raises
    ------
    SettingsError
        Where a file of tokens cannot be read.
    """

    def __init__(self, serve: ServeSettings) -> None:
        self._hosts = {name.lower() for name in serve.hosts}
        if not self._hosts:
            host = f"[{serve.host}]" if ":" in serve.host else serve.host.lower()
            self._hosts = {host}
            if is_loopback(serve.host):
                self._hosts |= LOOPBACK_NAMES
        self._origins = frozenset(serve.origins)
        self._proxies = [ipaddress.ip_network(each) for each in serve.proxies]
        self._tokens = {
            role: Tokens(f"serve.{role}_tokens_file", file)
            for role, file in (
                (SEND, serve.send_tokens_file),
                (RANK, serve.rank_tokens_file),
            )
            if file
        }
        self._has_browser_clicks = serve.browser_clicks
        self._rates = Rates(serve.client_rate)
        self._click_rates = Rates(serve.click_rate)

    def may_ask_any_host(self, role: str) -> bool:
        """Whether a path that asks for this role need not be asked for by our name.

        The name keeps out pages that were led here. They have no token, so where every
        token is taken but none is not, the token alone does; counters are then read
        from each of several servers, by address.
        """
        return role == ANY and bool(self._tokens)

    def check_host(self, call: Call) -> None:
        """Refuse what asks for another name, as a page does that was led here.

        Raises
        ------
        Problem
        """
        host = call.header(b"host").lower()
        if host in self._hosts:
            return
        name, _, port = host.rpartition(":")
        if not (port.isascii() and port.isdigit()):
            name = host
        if name not in self._hosts and ("*" not in self._hosts or not name):
            raise Problem(
                HTTPStatus.MISDIRECTED_REQUEST,
                "host",
                f"host must be one that is served here; got {host[:100]!r}: ask for "
                "another, or name it in serve.hosts",
                is_last=True,
            )

    def asking(self, call: Call) -> Asking:
        """Who asks.

        Raises
        ------
        Problem
            Where a page asks whose origin is not named.
        """
        origin = call.header(b"origin")
        if origin and origin not in self._origins:
            raise Problem(
                HTTPStatus.FORBIDDEN,
                "origin",
                f"origin must be one of serve.origins; got {origin[:100]!r}",
            )
        return Asking(self._address_of(call), origin)

    def check(self, call: Call, role: str, asking: Asking) -> None:
        """Refuse who may not ask, or asks too often.

        Raises
        ------
        Problem
        """
        token = _token_of(call)
        if role == CLICK and self._has_browser_clicks and not token:
            self._check_click(asking)
            return
        wanted = SEND if role == CLICK else role
        if role != NOBODY and not self._is_let_in(wanted, token):
            raise Problem(
                HTTPStatus.UNAUTHORIZED,
                "token",
                "authorization must be `Bearer TOKEN`, with a token of the file "
                f"serve.{wanted if role != ANY else 'rank'}_tokens_file; "
                f"{'it is another' if token else 'there is none'}",
                headers=((b"www-authenticate", b"Bearer"),),
            )
        # A token that nobody asks for could be another one in each request.
        is_known = bool(self._tokens) if role == ANY else wanted in self._tokens
        _check_rate(self._rates, token if is_known else asking.address)

    def headers_for(self, origin: str) -> tuple[tuple[bytes, bytes], ...]:
        """What lets a page read the answer."""
        if not self._origins:
            return ()
        if origin not in self._origins:
            return ((b"vary", b"Origin"),)
        allowed = (b"access-control-allow-origin", origin.encode("latin-1"))
        return allowed, (b"vary", b"Origin")

    def _check_click(self, asking: Asking) -> None:
        if not asking.origin:
            raise Problem(
                HTTPStatus.FORBIDDEN,
                "origin",
                "a click without a token must come from a page of serve.origins; the "
                "header Origin is missing: send a token, or let the page send it",
            )
        _check_rate(self._click_rates, asking.address)

    def _is_let_in(self, role: str, token: str) -> bool:
        if role == ANY:
            if not self._tokens:
                return True
            found = [tokens.knows(token) for tokens in self._tokens.values()]
            return any(found)
        tokens = self._tokens.get(role)
        return tokens is None or tokens.knows(token)

    def _address_of(self, call: Call) -> str:
        """That of the client, as the nearest proxy that is not ours has it."""
        peer = call.scope.get("client") or ("", 0)
        address = str(peer[0])
        if not self._proxies or not self._is_proxy(address):
            return address
        told = call.header(b"x-forwarded-for").split(",")
        for each in reversed(told):
            found = each.strip()
            if found and not self._is_proxy(found):
                return found[:64]
        return address

    def _is_proxy(self, address: str) -> bool:
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(found in network for network in self._proxies)


def _token_of(call: Call) -> str:
    scheme, _, token = call.header(b"authorization").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _check_rate(rates: Rates, client: str) -> None:
    wait_s = rates.wait_s(client)
    if wait_s:
        raise Problem(
            HTTPStatus.TOO_MANY_REQUESTS,
            "rate",
            f"a client must ask less often; ask again in {wait_s:.1f} s",
            retry_s=max(1, round(wait_s + 0.5)),
        )
