"""Where processes listen, as the kernel says: `/proc/net/tcp` and its neighbours."""

import ipaddress
import socket

import psutil


def listening(pid: int) -> set[str]:
    """Addresses at which a process and its children take connections or datagrams."""
    process = psutil.Process(pid)
    found = set()
    for each in (process, *process.children(recursive=True)):
        for connection in each.net_connections(kind="inet"):
            is_open = connection.type == socket.SOCK_DGRAM and not connection.raddr
            if is_open or connection.status == psutil.CONN_LISTEN:
                found.add(str(connection.laddr.ip))
    return found


def beyond_loopback(pid: int) -> set[str]:
    """Those of them that others can reach."""
    return {ip for ip in listening(pid) if not ipaddress.ip_address(ip).is_loopback}
