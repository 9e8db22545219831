"""The certificate of the rows with TLS: the same for every broker of a run."""

from functools import cache
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    load_pem_private_key,
    pkcs12,
)

from tests.support.certificates import Authority, Issued

KEYSTORE_PASSWORD: Final = "bench"


@cache
def certificate() -> Issued:
    """Return a certificate for localhost with a key on the curve P-256, made once in a run."""
    return Authority().issue("localhost")


def keystore(path: Path) -> None:
    """Write the certificate and its key as PKCS #12, for brokers in Java."""
    issued = certificate()
    key = load_pem_private_key(issued.key, None)
    assert isinstance(key, EllipticCurvePrivateKey)
    chain = x509.load_pem_x509_certificates(issued.chain)
    encrypted = BestAvailableEncryption(KEYSTORE_PASSWORD.encode())
    path.write_bytes(
        pkcs12.serialize_key_and_certificates(b"bench", key, chain[0], chain[1:], encrypted)
    )
