"""The audit that is off."""

from broker.audit.audit import Audit
from broker.audit.record import AuditEvent


async def test_an_audit_that_is_off_takes_everything_and_keeps_nothing() -> None:
    audit = Audit()
    await audit.start()
    audit.record(AuditEvent(action="auth.success"))
    await audit.close()
    assert not audit.is_on
    assert vars(audit) == {}
