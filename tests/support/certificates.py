"""Certificates for tests of TLS: an authority that issues them, as files and as client contexts."""

from __future__ import annotations

import datetime as dt
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

EXPIRED: Final = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
"""End of an expired certificate; trustme's certificates begin in 2000."""

SERVER_NAME: Final = "localhost"


class Issued:
    """A certificate with its key and chain."""

    def __init__(self, leaf: trustme.LeafCert) -> None:
        self._leaf: Final = leaf
        self.parsed: Final = x509.load_pem_x509_certificate(leaf.cert_chain_pems[0].bytes())

    @property
    def der(self) -> bytes:
        """The certificate as a peer sees it."""
        return self.parsed.public_bytes(serialization.Encoding.DER)

    @property
    def chain(self) -> bytes:
        """The certificate and its intermediates, in PEM."""
        return b"".join(blob.bytes() for blob in self._leaf.cert_chain_pems)

    @property
    def key(self) -> bytes:
        """The private key, in PEM."""
        return self._leaf.private_key_pem.bytes()

    def key_with(self, password: str) -> bytes:
        """Return the private key, encrypted, in PEM."""
        key = serialization.load_pem_private_key(self.key, None)
        return key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(password.encode()),
        )

    def write(self, folder: Path, name: str) -> tuple[Path, Path]:
        """Write `NAME.pem` and `NAME.key` into `folder`, and return their paths."""
        certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
        certificate.write_bytes(self.chain)
        key.write_bytes(self.key)
        return certificate, key

    def use_in(self, context: ssl.SSLContext) -> None:
        """Show this certificate to peers."""
        self._leaf.configure_cert(context)


class Authority:
    """A certificate authority with a key of its own."""

    def __init__(self, ca: trustme.CA | None = None) -> None:
        self._ca: Final = ca or trustme.CA()

    @property
    def pem(self) -> bytes:
        """The authority's own certificate, in PEM."""
        return self._ca.cert_pem.bytes()

    @property
    def parsed(self) -> x509.Certificate:
        """The authority's own certificate."""
        return x509.load_pem_x509_certificate(self.pem)

    def child(self) -> Authority:
        """Return an authority whose certificate is of this one; it issues chains."""
        return Authority(self._ca.create_child_ca())

    def issue(self, *names: str, expired: bool = False) -> Issued:
        """Return a certificate for host names or an email address."""
        end = EXPIRED if expired else None
        return Issued(self._ca.issue_cert(*names, common_name=names[0], not_after=end))

    def write(self, folder: Path, name: str = "ca") -> Path:
        """Write the authority's certificate to `NAME.pem` in `folder`, and return its path."""
        path = folder / f"{name}.pem"
        path.write_bytes(self.pem)
        return path

    def crl(self, revoked: Sequence[Issued | Authority], end: dt.datetime) -> bytes:
        """Return a revocation list in PEM whose next update is at `end`."""
        begin = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
        built = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(self.parsed.subject)
            .last_update(begin)
            .next_update(end)
        )
        for each in revoked:
            built = built.add_revoked_certificate(
                x509.RevokedCertificateBuilder()
                .serial_number(each.parsed.serial_number)
                .revocation_date(begin)
                .build()
            )
        key = serialization.load_pem_private_key(self._ca.private_key_pem.bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return built.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def client(
        self,
        shown: Issued | None = None,
        *,
        version: ssl.TLSVersion | None = None,
    ) -> ssl.SSLContext:
        """Return a client that trusts this authority and shows the certificate `shown`, if any.

        `version` is the only version that it speaks; old ones need weaker ciphers, too.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._ca.configure_trust(context)
        if shown is not None:
            shown.use_in(context)
        if version is not None:
            if version < ssl.TLSVersion.TLSv1_2:
                context.set_ciphers("ALL:@SECLEVEL=0")
            context.minimum_version = context.maximum_version = version
        return context


class MemoryHandshake:
    """A handshake in memory between a server's and a client's context, and the data after it."""

    def __init__(
        self,
        server: ssl.SSLContext,
        client: ssl.SSLContext,
        *,
        name: str | None = SERVER_NAME,
        session: ssl.SSLSession | None = None,
    ) -> None:
        """Raise ssl.SSLError if the server or the client refuses."""
        to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        if name is None:
            client.check_hostname = False
        self.client: Final = client.wrap_bio(
            to_client, to_server, server_hostname=name, session=session
        )
        self.server: Final = server.wrap_bio(to_server, to_client, server_side=True)
        ends = [self.client, self.server]
        while ends:
            ends = [end for end in ends if not _is_done(end)]
        # a client of TLS 1.3 learns with its first data whether the server accepts it
        self.exchange(b"first")

    def exchange(self, data: bytes) -> None:
        """Send `data` both ways."""
        self.server.write(data)
        assert self.client.read() == data
        self.client.write(data)
        assert self.server.read() == data


def _is_done(end: ssl.SSLObject) -> bool:
    try:
        end.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True
