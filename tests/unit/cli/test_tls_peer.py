"""The report of a client on the TLS of a server."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socket import AF_INET, socket

import pytest

from broker.amqp.frames import SASL_HEADER
from broker.cli.client_tls import ClientTls
from broker.cli.tls_peer import PeerReport, TlsPeer, UnreachableError
from tests.support.certificates import EXPIRED, SERVER_NAME, Authority, Issued

PATIENCE_S = 20.0
ELSEWHERE = "shop.example"


@contextmanager
def serving(issued: Issued, answer: bytes = SASL_HEADER) -> Iterator[int]:
    """Serve TLS with a certificate, one connection after another; return the port.

    The first data of a client gets `answer`, then the connection ends.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issued.use_in(context)
    with socket(AF_INET) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()

        def serve() -> None:
            with suppress(OSError):  # the end of the listening socket ends the thread
                while True:
                    serve_one(listening.accept()[0])

        def serve_one(accepted: socket) -> None:
            with suppress(OSError), context.wrap_socket(accepted, server_side=True) as encrypted:
                encrypted.recv(len(SASL_HEADER))
                encrypted.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            listening.shutdown(2)
            thread.join(PATIENCE_S)


def report(port: int, ca: Path | None) -> PeerReport:
    return TlsPeer(SERVER_NAME, port, ClientTls(ca=ca), timeout_s=PATIENCE_S).report()


UNTRUSTED = "its certificate is not signed by an authority in "
WRONG_NAME = f"its certificate is not for the name {SERVER_NAME}"
OVER = "its certificate, or one that signed it, has expired"


@pytest.mark.parametrize(
    ("name", "is_trusted", "expired", "problems"),
    [
        pytest.param(SERVER_NAME, True, False, [], id="sound"),
        pytest.param(SERVER_NAME, False, False, [UNTRUSTED], id="untrusted"),
        pytest.param(ELSEWHERE, True, False, [WRONG_NAME], id="of another name"),
        pytest.param(SERVER_NAME, True, True, [OVER], id="expired"),
        pytest.param(ELSEWHERE, False, False, [UNTRUSTED, WRONG_NAME], id="both"),
    ],
)
def test_what_is_wrong_with_a_certificate(
    tmp_path: Path, name: str, is_trusted: bool, expired: bool, problems: list[str]
) -> None:
    authority = Authority()
    ca = (authority if is_trusted else Authority()).write(tmp_path)
    with serving(authority.issue(name, expired=expired)) as port:
        found = report(port, ca)
    told = zip(found.problems(), problems, strict=True)
    assert all(each.startswith(text) for each, text in told)
    assert found.facts is not None
    assert found.facts.names == (name,)
    assert (found.protocol, found.speaks) == ("TLSv1.3", "AMQP 1.0")
    if expired:
        assert found.facts.end_s == EXPIRED.timestamp()


def test_an_end_that_is_near(tmp_path: Path) -> None:
    authority = Authority()
    with serving(authority.issue(SERVER_NAME)) as port:
        found = report(port, authority.write(tmp_path))
    assert found.facts is not None
    end_s = found.facts.end_s
    assert found.warning(end_s - 29 * 86_400).startswith("its certificate ends soon, days left 29")
    assert found.warning(end_s - 30 * 86_400) == found.warning(end_s + 1) == ""


@pytest.mark.parametrize(
    ("answer", "speaks"),
    [
        pytest.param(b"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP", id="HTTP"),
        pytest.param(b"220 mail.example ready\r\n", "no AMQP", id="another protocol"),
        pytest.param(b"", "no AMQP: it ends the connection", id="nothing"),
    ],
)
def test_the_protocol_within_tls(tmp_path: Path, answer: bytes, speaks: str) -> None:
    authority = Authority()
    with serving(authority.issue(SERVER_NAME), answer) as port:
        assert report(port, authority.write(tmp_path)).speaks == speaks


def test_nothing_listens() -> None:
    with socket(AF_INET) as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(UnreachableError, match="Connection refused"):
            report(taken.getsockname()[1], None)
