"""Finds authorities of clients of which the broker has no list of revoked certificates.

OpenSSL refuses a client unless there is a list of each authority in its chain, by the name of that
authority. The standard library does not show the names of lists: they are read here, from DER (RFC
5280 4.1 and 5.1). The files are the operator's: nothing that a client sends is read by this module.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from broker.net.certificate_dates import INTEGER, SEQUENCE, VERSION, DerFields
from broker.net.tls_files import CRL, TlsFiles

SET: Final = 0x31
OBJECT_IDENTIFIER: Final = 0x06

ENCODINGS: Final = {
    0x0C: "utf-8",
    0x13: "ascii",
    0x14: "latin-1",
    0x16: "ascii",
    0x1A: "ascii",
    0x1C: "utf-32-be",
    0x1E: "utf-16-be",
}
"""The encodings of a text in a name, by their tags."""

SHORT: Final = {
    b"\x55\x04\x03": "CN",
    b"\x55\x04\x06": "C",
    b"\x55\x04\x07": "L",
    b"\x55\x04\x08": "ST",
    b"\x55\x04\x0a": "O",
    b"\x55\x04\x0b": "OU",
}
"""The usual short names of the attributes of a name, by their object identifiers."""


@dataclass(frozen=True, kw_only=True)
class AuthorityName:
    """The name of an authority. Names are equal if OpenSSL finds them equal: by `compared`."""

    text: str = field(compare=False)
    compared: tuple[tuple[tuple[bytes, bytes], ...], ...]


def subject_of(der: bytes) -> AuthorityName:
    """Return the subject of a certificate. ValueError if it is not DER."""
    fields = DerFields(der).inner(SEQUENCE).inner(SEQUENCE)
    fields.skip_optional(VERSION)
    fields.skip(INTEGER)
    for _ in ("signature", "issuer", "validity"):
        fields.skip(SEQUENCE)
    return _name(fields.inner(SEQUENCE))


def authority_of(der: bytes) -> AuthorityName:
    """Return the authority that has issued a revocation list. ValueError if it is not DER."""
    fields = DerFields(der).inner(SEQUENCE).inner(SEQUENCE)
    fields.skip_optional(INTEGER)
    fields.skip(SEQUENCE)
    return _name(fields.inner(SEQUENCE))


def _name(fields: DerFields) -> AuthorityName:
    texts: list[str] = []
    compared: list[tuple[tuple[bytes, bytes], ...]] = []
    while fields.tag() is not None:
        several = fields.inner(SET)
        found: list[tuple[bytes, bytes]] = []
        while several.tag() is not None:
            attribute = several.inner(SEQUENCE)
            kind, text, canonical = _attribute(attribute)
            texts.append(f"{SHORT.get(kind, kind.hex())}={text}")
            found.append((kind, canonical))
        compared.append(tuple(sorted(found)))
    return AuthorityName(text=", ".join(texts), compared=tuple(compared))


def _attribute(fields: DerFields) -> tuple[bytes, str, bytes]:
    """Return the object identifier of an attribute, its text, and what OpenSSL compares.

    That is the text without the case of ASCII letters, and with single spaces; other values as
    they are.
    """
    _, kind = fields.value()
    tag, value = fields.value()
    encoding = ENCODINGS.get(tag)
    if encoding is None:
        return kind, value.hex(), bytes((tag,)) + value
    text = value.decode(encoding, errors="replace")
    return kind, text, b" ".join(text.encode().lower().split())


def lacking(authorities: Iterable[bytes], lists: Iterable[bytes]) -> list[AuthorityName]:
    """Return the names of those certificates in DER of which there is none of the `lists`."""
    there = {authority_of(each) for each in lists}
    wanted = dict.fromkeys(subject_of(each) for each in authorities)
    return [each for each in wanted if each not in there]


def check_lists(files: TlsFiles) -> int:
    """Return the number of authorities of clients, each of which has a list; 0 without the setting.

    Raise TlsError if one has none: then OpenSSL would refuse all of its clients.
    """
    if files.client_ca is None or files.crl is None:
        return 0
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    files.load_authorities_into(context)
    lists = files.crl.blocks(CRL)
    if f"BEGIN {CRL}".encode() in files.client_ca.read():  # OpenSSL has taken these, too
        lists += files.client_ca.blocks(CRL)
    # a certificate of a client beside the authorities signs nothing, and needs no list
    authorities = context.get_ca_certs(binary_form=True)
    try:
        found = lacking(authorities, lists)
    except ValueError as error:
        raise files.crl.error(
            f"the name of an authority cannot be read ({error}): replace the file"
        ) from None
    if found:
        names = "; ".join(each.text for each in found)
        raise files.crl.error(
            f"it has no list of revoked certificates of {names}. Each authority in"
            f" {files.client_ca.key} = '{files.client_ca.path}' needs its list, or its clients are"
            " refused: add the list, or remove the authority"
        )
    return len(authorities)
