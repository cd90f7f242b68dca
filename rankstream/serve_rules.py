"""What settings of `rankstream serve` may not be."""

import ipaddress
import re
from collections.abc import Iterator

from rankstream.sections import ServeSettings

Fault = tuple[str, str]
"""The full name of a setting, and a sentence about it."""

HOST = re.compile(r"[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]|\*")
ORIGIN = re.compile(r"https?://([a-z0-9.-]+|\[[0-9a-f:.]+\])(:\d{1,5})?")


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address; of names `localhost` alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def serve_faults(serve: ServeSettings) -> Iterator[Fault]:
    """What is wrong with these settings."""
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
