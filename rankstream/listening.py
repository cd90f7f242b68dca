"""Whether an address that a server listens at is reached from other machines."""

import ipaddress


def openness(address: str, port: int) -> str:
    """A warning about an address that others can reach; empty for loopback.

    Parameters
    ----------
    address
        That of the socket, not a name of it.

    Examples
    --------
    >>> openness("127.0.0.1", 80), openness("::1", 80)
    ('', '')
    >>> print(openness("0.0.0.0", 8087))  # doctest: +ELLIPSIS
    0.0.0.0:8087 is not loopback: whoever reaches this machine can read the page, ...
    """
    if ipaddress.ip_address(address).is_loopback:
        return ""
    return (
        f"{address}:{port} is not loopback: whoever reaches this machine can read the "
        "page, which asks for no password; let only those through who may"
    )
