"""TLS in front of a server that speaks none, such as a Redis that was built without."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator

HANDSHAKE = 0x16
"""First byte of a connection that begins with TLS."""


class TlsProxy:
    """Takes TLS connections on loopback and passes their bytes on to a port.

    Attributes
    ----------
    first_bytes
        What each client sent first, in the clear.
    """

    def __init__(self, context: ssl.SSLContext, target: int) -> None:
        self.first_bytes: list[int] = []
        self._context = context
        self._target = target
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(
                    target=self._connect, args=(client,), daemon=True
                ).start()

    def _connect(self, client: socket.socket) -> None:
        client.settimeout(20)
        with contextlib.suppress(OSError), client:
            first = client.recv(1, socket.MSG_PEEK)
            if not first:
                return
            self.first_bytes.append(first[0])
            with (
                self._context.wrap_socket(client, server_side=True) as ours,
                socket.create_connection(("127.0.0.1", self._target)) as server,
            ):
                back = threading.Thread(target=_pump, args=(server, ours), daemon=True)
                back.start()
                _pump(ours, server)
                back.join()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while some := source.recv(65_536):
            sink.sendall(some)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def tls_proxy(context: ssl.SSLContext, target: int) -> Iterator[TlsProxy]:
    """A proxy for as long as the context lasts."""
    proxy = TlsProxy(context, target)
    try:
        yield proxy
    finally:
        proxy.close()
