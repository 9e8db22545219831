"""The interface to the audit of a broker, and the audit that is off."""

from __future__ import annotations

from pathlib import Path

from broker.audit.record import AuditEvent, ChainLink


class Audit:
    """An audit that is off: it records nothing. Others derive from it.

    Callers that would compute something for an event ask `is_on` first. `record` is called in the
    thread of the event loop, never waits, and never fails.
    """

    is_on: bool = False

    def record(self, event: AuditEvent) -> None:
        """Record an event, or do nothing if the audit is off."""

    def folder(self) -> Path | None:
        """Return the folder of the records; None if the audit is off."""
        return None

    def head(self) -> ChainLink | None:
        """Return the last record that was written; None without one, or if the audit is off."""
        return None

    async def start(self) -> None:
        """Begin to write records."""

    async def close(self) -> None:
        """Write what has been recorded, and end."""
