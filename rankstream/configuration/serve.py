"""`rankstream serve`: where it listens, who may ask, and how much."""

import ipaddress
import re
from collections.abc import Iterator
from typing import Annotated

import msgspec

from rankstream.configuration.section import (
    Fault,
    NotNegative,
    Positive,
    PositiveFloat,
    Section,
)

HOST = re.compile(r"[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]|\*")
ORIGIN = re.compile(r"https?://([a-z0-9.-]+|\[[0-9a-f:.]+\])(:\d{1,5})?")


class ServeSettings(Section, frozen=True):
    """`rankstream serve`: where it listens, who may ask, and how much.

    `hosts` are names that clients may ask for, `origins` those of pages whose scripts
    may, `proxies` addresses whose X-Forwarded-For is believed. Tokens are in files, one
    a line. With `browser_clicks` clicks need no token. Rates are requests a second of
    one client; 0 means no limit.
    """

    host: str = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65_535)] = 8088
    hosts: list[str] = []
    origins: list[str] = []
    proxies: list[str] = []
    send_tokens_file: str = ""
    rank_tokens_file: str = ""
    open: bool = False
    browser_clicks: bool = False
    certificate_file: str = ""
    key_file: str = ""
    key_password_file: str = ""
    body_bytes: Annotated[int, msgspec.Meta(ge=1_024, le=64 << 20)] = 4 << 20
    head_bytes: Annotated[int, msgspec.Meta(ge=1_024, le=1 << 20)] = 16 << 10
    events: Annotated[int, msgspec.Meta(gt=0, le=65_536)] = 10_000
    values: Annotated[int, msgspec.Meta(ge=1_000)] = 200_000
    under_way_bytes: Annotated[int, msgspec.Meta(ge=1 << 20)] = 64 << 20
    connections: Positive = 2_000
    head_s: PositiveFloat = 5.0
    body_s: PositiveFloat = 15.0
    answer_s: PositiveFloat = 10.0
    client_rate: NotNegative = 0.0
    click_rate: NotNegative = 20.0


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address; of names `localhost` alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def serve_faults(serve: ServeSettings) -> Iterator[Fault]:
    """Each setting of `[serve]` that cannot be so."""
    for name in ("send_tokens_file", "rank_tokens_file"):
        if not (getattr(serve, name) or serve.open or is_loopback(serve.host)):
            setting = f"serve.{name}"
            yield (
                setting,
                f"{setting} must be set where others reach serve.host; got "
                f"{serve.host}: name a file of tokens, or set serve.open = true where "
                "something else keeps strangers away",
            )
    yield from _of_names(serve)
    if serve.key_file and not serve.certificate_file:
        yield (
            "serve.key_file",
            "serve.key_file must be set with serve.certificate_file; it is missing",
        )
    if serve.under_way_bytes < 4 * serve.body_bytes:
        # A body may be there twice, packed and unpacked, and once more as records.
        yield (
            "serve.under_way_bytes",
            "serve.under_way_bytes must be four times serve.body_bytes or more; got "
            f"{serve.under_way_bytes} for {serve.body_bytes}",
        )


def _of_names(serve: ServeSettings) -> Iterator[Fault]:
    for host in serve.hosts:
        if not HOST.fullmatch(host):
            yield (
                "serve.hosts",
                "serve.hosts must be names without scheme and port, or *; got "
                f"{host!r}",
            )
    for origin in serve.origins:
        if not ORIGIN.fullmatch(origin):
            yield (
                "serve.origins",
                "serve.origins must be such as https://shop.example.com, in small "
                f"letters and without a path; got {origin!r}",
            )
    for proxy in serve.proxies:
        try:
            ipaddress.ip_network(proxy)
        except ValueError:
            yield (
                "serve.proxies",
                f"serve.proxies must be addresses or networks; got {proxy!r}",
            )
    if serve.browser_clicks and not serve.origins:
        yield (
            "serve.origins",
            "serve.origins must be set with serve.browser_clicks; it names no page: "
            "name those whose visitors click",
        )
