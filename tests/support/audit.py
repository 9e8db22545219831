"""An audit that keeps its events in memory."""

from broker.audit.audit import Audit
from broker.audit.record import AuditEvent


class RecordingAudit(Audit):
    """Keeps the events, all of them, in `events`."""

    is_on = True

    def __init__(self) -> None:
        self.events: list[AuditEvent] = []

    def record(self, event: AuditEvent) -> None:
        self.events.append(event)

    def told(self) -> list[tuple[str, str, str]]:
        """Return action, resource and result of each event, and forget them."""
        found = [(event.action, event.resource, event.result) for event in self.events]
        self.events.clear()
        return found
