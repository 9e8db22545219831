"""Checks the files that a table of TLS settings names, for `jms-broker tls check`."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from broker.net.certificate_dates import certificate_end_s
from broker.net.certificate_facts import (
    WARNING_DAYS,
    CertificateFacts,
    client_trusting,
    days_left,
    facts_of,
    time_text,
)
from broker.net.revocation_lists import check_lists
from broker.net.tls import TlsContexts
from broker.net.tls_files import CERTIFICATE, KeyPair, TlsError, TlsFile, TlsFiles
from broker.net.tls_proof import handshake
from broker.tls_settings import TlsSettings

Level = Literal["ok", "warning", "failed"]


@dataclass(frozen=True, kw_only=True)
class TlsFinding:
    """One check of a table of TLS settings. `days` are those of validity that are left."""

    level: Level
    setting: str
    check: str
    text: str
    days: int | None = None

    def record(self) -> dict[str, object]:
        """Return the finding for print and JSON."""
        return {
            "result": self.level,
            "setting": self.setting,
            "check": self.check,
            "days": self.days,
            "finding": self.text,
        }


def findings(settings: TlsSettings, place: str, *, now_s: float) -> list[TlsFinding]:
    """Return what is right and wrong with the files of `settings` at `now_s`, in s since 1970.

    `place` is the name of their table. The broker starts with them unless a finding has failed.
    """
    try:
        contexts = TlsContexts(settings, place=place, wall_s=lambda: now_s)
        found = [
            _dated(each.key, each.content, each.end_s, now_s=now_s) for each in contexts.dated()
        ]
        files = TlsFiles(settings, place)
        for host, pair in files.pairs.items():
            found += pair_findings(pair, host, now_s=now_s)
        if files.client_ca is not None:
            found.append(_authorities(files.client_ca, now_s=now_s))
        if files.crl is not None:
            text = f"each of the authorities of clients has its list: {check_lists(files)}"
            found.append(TlsFinding(level="ok", setting=files.crl.key, check="lists", text=text))
    except TlsError as error:
        return [TlsFinding(level="failed", setting=place, check="files", text=str(error))]
    return found


def _dated(key: str, content: str, end_s: float, *, now_s: float) -> TlsFinding:
    """Return whether a certificate or a revocation list, whose end is ahead, ends soon."""
    days = days_left(end_s, now_s)
    is_soon = days < WARNING_DAYS
    text = f"{content} ends on {time_text(end_s)}, days left {days}"
    return TlsFinding(
        level="warning" if is_soon else "ok",
        setting=key,
        check="dates",
        text=f"{text}: replace the file" if is_soon else text,
        days=days,
    )


def pair_findings(pair: KeyPair, host: str, *, now_s: float) -> Iterator[TlsFinding]:
    """Check a certificate with its key: the handshake, its names, and its chain.

    `host` is empty for the first certificate, which clients get that ask for no other. Raise
    TlsError if the files cannot be used. The end of validity is not compared.
    """
    key = pair.certificate.key
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    pair.load_into(server)
    blocks = pair.certificate.blocks(CERTIFICATE)
    try:
        shown = handshake(server, client_trusting(blocks[0]))
    except ssl.SSLError as error:
        text = f"a client cannot use the certificate: {_reason(error)}"
        yield TlsFinding(level="failed", setting=key, check="handshake", text=text)
        return
    facts, cipher = facts_of(shown), shown.cipher()
    text = f"the key fits; a handshake with itself: {shown.version()}, {cipher and cipher[0]}"
    yield TlsFinding(level="ok", setting=key, check="handshake", text=text)
    if facts.begin_s > now_s:
        text = f"it is not valid before {time_text(facts.begin_s)}: correct the clock, or wait"
        yield TlsFinding(level="failed", setting=key, check="dates", text=text)
    yield _names(server, blocks[0], facts, key=key, host=host)
    yield _chain(server, blocks, facts, key=key)


def _names(
    server: ssl.SSLContext, leaf: bytes, facts: CertificateFacts, *, key: str, host: str
) -> TlsFinding:
    """Return whether clients find a name in the certificate, and `host` if it is for one."""
    names = ", ".join(facts.names)
    if not names:
        text = (
            f"it has no name (subjectAltName), only {facts.subject}: clients that compare names"
            " refuse it; make one with subjectAltName=DNS:HOST"
        )
        return TlsFinding(
            level="failed" if host else "warning", setting=key, check="names", text=text
        )
    if host:
        client = client_trusting(leaf)
        client.check_hostname = True
        try:
            handshake(server, client, host=host)
        except ssl.SSLError:
            text = f"it is not for its host {host}, but for {names}: change one"
            return TlsFinding(level="failed", setting=key, check="names", text=text)
        return TlsFinding(
            level="ok", setting=key, check="names", text=f"for {names}, by SNI for {host}"
        )
    return TlsFinding(level="ok", setting=key, check="names", text=f"for {names}")


def _chain(
    server: ssl.SSLContext, blocks: list[bytes], facts: CertificateFacts, *, key: str
) -> TlsFinding:
    """Return whether the certificates of a file lead from the first one to the last."""

    def finding(level: Level, text: str) -> TlsFinding:
        return TlsFinding(level=level, setting=key, check="chain", text=text)

    if facts.subject == facts.issuer:
        return finding("ok", f"it is its own authority, {facts.issuer}: clients must trust it")
    if len(blocks) == 1:
        return finding(
            "ok", f"signed by {facts.issuer}, without intermediates: clients must trust that"
        )
    try:
        handshake(server, client_trusting(blocks[-1]))
    except ssl.SSLError as error:
        return finding(
            "failed",
            f"the {len(blocks)} certificates of the file do not lead from the first to the last"
            f" ({_reason(error)}): write the intermediates of {facts.issuer} behind the first one",
        )
    return finding("ok", f"signed by {facts.issuer}; certificates in the file: {len(blocks)}")


def _authorities(file: TlsFile, *, now_s: float) -> TlsFinding:
    """Return how many authorities of clients there are, and whether one has ended or ends soon."""
    try:
        ends = [certificate_end_s(each) for each in file.blocks(CERTIFICATE)]
    except ValueError as error:
        raise file.error(f"a certificate in it is damaged ({error}): replace the file") from None
    first = min(ends)
    days = days_left(first, now_s)
    text = f"authorities of clients: {len(ends)}; the first end is on {time_text(first)}"
    if days >= WARNING_DAYS:
        return TlsFinding(level="ok", setting=file.key, check="dates", text=text, days=days)
    text += ": clients with certificates of it will be refused, so add its successor"
    return TlsFinding(level="warning", setting=file.key, check="dates", text=text, days=days)


def _reason(error: ssl.SSLError) -> str:
    """Return OpenSSL's reason in words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    return (error.reason or str(error)).replace("_", " ").lower()
