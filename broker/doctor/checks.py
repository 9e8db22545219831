"""The checks of the doctor, by their codes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from broker.doctor import access_checks, file_checks, machine_checks, queue_checks, tls_checks
from broker.doctor.checked_broker import CheckedBroker
from broker.doctor.finding import CheckResult, DoctorFinding

Check = Callable[[CheckedBroker], CheckResult]

CHECKS: Final[Mapping[str, tuple[str, Check]]] = {
    "D01": ("limit of open files", machine_checks.descriptor_limit),
    "D02": ("clock", machine_checks.clock),
    "D03": ("rights on files", file_checks.file_rights),
    "D04": ("sync latency", machine_checks.sync_latency),
    "D05": ("free disk", machine_checks.free_disk),
    "D06": ("version of the store", file_checks.store_version),
    "D07": ("dates of certificates", tls_checks.certificate_dates),
    "D08": ("names and chain", tls_checks.names_and_chain),
    "D09": ("TLS handshake", tls_checks.handshake),
    "D10": ("listeners without TLS", access_checks.plain_listeners),
    "D11": ("HTTP without TLS", access_checks.http_without_tls),
    "D12": ("users without SCRAM", access_checks.users_without_scram),
    "D13": ("users without roles", access_checks.users_without_roles),
    "D14": ("dead rules", access_checks.dead_rules),
    "D15": ("anonymous clients", access_checks.anonymous_access),
    "D16": ("dead letters", queue_checks.dead_letter_growth),
    "D17": ("queues without consumers", queue_checks.queues_without_consumers),
    "D18": ("compiled, uvloop", machine_checks.build),
    "D19": ("foreign packages", machine_checks.foreign_packages),
    "D20": ("backup", file_checks.backup_age),
}
"""The subject and the function of each check."""


def examine(checked: CheckedBroker) -> list[DoctorFinding]:
    """Make all checks, and return their findings in the order of the codes."""
    return [_made(code, subject, check(checked)) for code, (subject, check) in CHECKS.items()]


def _made(code: str, subject: str, result: CheckResult) -> DoctorFinding:
    return DoctorFinding(
        code=code,
        check=subject,
        level=result.level,
        finding=" ".join(result.finding.split()),
        remedy=" ".join(result.remedy.split()),
    )
