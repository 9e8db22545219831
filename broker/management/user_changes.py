"""Records in the audit which users have changed, by management or by other programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from broker.audit.audit import Audit
from broker.audit.record import BROKER, Actor, AuditEvent
from broker.security.account import UserAccount, user_attributes
from broker.security.users import Users

ADDED: Final = "user.added"
CHANGED: Final = "user.changed"
REMOVED: Final = "user.removed"


class UserChanges:
    """The users as they were when they were last recorded. `users` returns the current ones.

    A change by management is recorded when it is made. Others are found when `record` is called
    without an actor: the file does not say who made them.
    """

    def __init__(self, users: Callable[[], Users], audit: Audit) -> None:
        self._users: Final = users
        self._audit: Final = audit
        self._seen: Mapping[str, UserAccount] = users().accounts()

    def know(self) -> None:
        """Take the present users as recorded, at the start."""
        self._seen = self._users().accounts()

    def record(self, actor: Actor = BROKER, request_id: str | None = None) -> None:
        """Record each user that was added, changed or removed since the last call."""
        before, self._seen = self._seen, self._users().accounts()
        if before is self._seen:
            return
        for name in sorted({*before, *self._seen}):
            old, new = before.get(name), self._seen.get(name)
            if old != new:
                self._audit.record(_event(name, old, new, actor=actor, request_id=request_id))


def _event(
    name: str,
    old: UserAccount | None,
    new: UserAccount | None,
    *,
    actor: Actor,
    request_id: str | None,
) -> AuditEvent:
    """Return the event of a change; it has the attributes that differ, and no secrets."""
    before = {} if old is None else dict(user_attributes(old))
    after = {} if new is None else dict(user_attributes(new))
    if old is not None and new is not None:
        differ = [key for key in after if before[key] != after[key]]
        before = {key: before[key] for key in differ}
        after = {key: after[key] for key in differ}
        if old.verifiers != new.verifiers:
            after["password_changed"] = old.verifiers.password != new.verifiers.password
    action = ADDED if old is None else REMOVED if new is None else CHANGED
    return AuditEvent(
        action=action,
        resource=f"user:{name}",
        actor=actor,
        before=before or None,
        after=after or None,
        request_id=request_id,
    )
