"""Checks of the certificates that the settings name: D07, D08, D09."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from broker.doctor.checked_broker import CheckedBroker
from broker.doctor.file_checks import tables_of
from broker.doctor.finding import (
    CheckResult,
    failure,
    joined,
    not_checked,
    warning,
    well,
)
from broker.doctor.machine_checks import NO_SETTINGS
from broker.net.certificate_dates import DatedFile
from broker.net.certificate_facts import WARNING_DAYS, days_left
from broker.net.revocation_lists import check_lists
from broker.net.tls_check import TlsFinding, pair_findings
from broker.net.tls_files import TlsError, TlsFiles

SEE_D09: Final = "D09 says why"

RENEW: Final = "replace the file, and run `jms-broker reload`"


def certificate_dates(checked: CheckedBroker) -> CheckResult:
    """Look for certificates and revocation lists that have ended, or end soon (D07)."""
    return _over_tables(checked, _dates, "no certificate ends within 30 days")


def names_and_chain(checked: CheckedBroker) -> CheckResult:
    """Look for certificates without their host name, or with a broken chain (D08)."""
    return _over_tables(
        checked, _pairs("names", "chain"), "names and chains of the certificates fit"
    )


def handshake(checked: CheckedBroker) -> CheckResult:
    """Let the broker's certificates and keys shake hands with themselves (D09).

    Look for authorities of clients without their revocation list, too: no client of theirs gets in.
    """
    return _over_tables(checked, _handshakes, "each certificate shakes hands with itself")


TableCheck = Callable[[TlsFiles, float], Iterator[CheckResult]]


def _over_tables(checked: CheckedBroker, check: TableCheck, sound: str) -> CheckResult:
    """Return the results of a check of all tables of TLS, as one."""
    if checked.settings is None:
        return not_checked(NO_SETTINGS)
    tables = tables_of(checked.settings)
    if not tables:
        return not_checked("the settings have no TLS")
    found: list[CheckResult] = []
    for place, table in tables.items():
        found += check(TlsFiles(table, place), checked.now_s)
    return joined(found, sound)


def _dates(files: TlsFiles, now_s: float) -> Iterator[CheckResult]:
    """Judge the end of each certificate and revocation list of one table."""
    try:
        dated = [each.certificate.dated_certificate() for each in files.pairs.values()]
        ends = [*dated, None if files.crl is None else files.crl.dated_crls()]
    except TlsError:
        yield not_checked(SEE_D09)
        return
    yield from (_date(each, now_s) for each in ends if each is not None)


def _date(file: DatedFile, now_s: float) -> CheckResult:
    text = f"{file.key} = '{file.path}': {file.content} ends on {file.end()}"
    if file.end_s <= now_s:
        return failure(f"{text}: it has expired", RENEW)
    days = days_left(file.end_s, now_s)
    return warning(f"{text}, in {days} days", RENEW) if days < WARNING_DAYS else well(text)


def _pairs(*checks: str) -> TableCheck:
    """Return a check of the certificates with their keys, by those of `tls check` of that name."""

    def check(files: TlsFiles, now_s: float) -> Iterator[CheckResult]:
        for host, pair in files.pairs.items():
            try:
                found = list(pair_findings(pair, host, now_s=now_s))
            except TlsError as error:
                yield (
                    failure(str(error), "correct the file or the setting: no client gets in")
                    if "handshake" in checks
                    else not_checked(SEE_D09)
                )
                continue
            yield from (_as_result(each) for each in found if each.check in checks)

    return check


def _handshakes(files: TlsFiles, now_s: float) -> Iterator[CheckResult]:
    yield from _pairs("handshake")(files, now_s)
    try:
        check_lists(files)
    except TlsError as error:
        yield failure(str(error), "correct the file or the setting: the broker does not start")


def _as_result(found: TlsFinding) -> CheckResult:
    text = f"{found.setting}: {found.text}"
    if found.level == "ok":
        return well(text)
    remedy = "make a certificate with the names of this host, and its intermediates behind it"
    return warning(text, remedy) if found.level == "warning" else failure(text, remedy)
