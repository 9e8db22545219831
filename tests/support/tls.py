"""TLS in front of a plaintext server: a local certificate, and a proxy that ends the encryption.

The command `openssl` makes the certificate; all our machines have it.
"""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit


class Certificate:
    """A self-signed certificate for localhost and 127.0.0.1; `path` is the file clients trust."""

    def __init__(self, path: Path, key: Path) -> None:
        self.path: Final = path
        self.key: Final = key


def certificate(folder: Path) -> Certificate:
    """Create a certificate in the new folder `folder`."""
    folder.mkdir()
    made = Certificate(folder / "certificate.pem", folder / "key.pem")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=localhost", "-keyout", str(made.key), "-out", str(made.path)),
            *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
        ],
        check=True,
        capture_output=True,
    )
    return made


@contextmanager
def encrypted(url: str, shown: Certificate) -> Iterator[str]:
    """Yield the https URL of a TLS proxy in front of the server at `url`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(shown.path, shown.key)
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    listener = socket.create_server(("127.0.0.1", 0))
    behind = (parts.hostname, parts.port)
    threading.Thread(target=_accept, args=(listener, context, behind), daemon=True).start()
    try:
        yield f"https://localhost:{listener.getsockname()[1]}"
    finally:
        listener.close()


def _accept(listener: socket.socket, context: ssl.SSLContext, behind: tuple[str, int]) -> None:
    while True:
        try:
            plain, _ = listener.accept()
        except OSError:  # closed, because the test is over
            return
        threading.Thread(target=_serve, args=(plain, context, behind), daemon=True).start()


def _serve(plain: socket.socket, context: ssl.SSLContext, behind: tuple[str, int]) -> None:
    # a client may reject the certificate, and may disconnect at any time
    with (
        suppress(OSError),
        context.wrap_socket(plain, server_side=True) as client,
        socket.create_connection(behind) as server,
    ):
        back = threading.Thread(target=_copy, args=(server, client), daemon=True)
        back.start()
        _copy(client, server)
        back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):  # either side may disconnect
        while data := source.recv(65_536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
