"""Outcomes of deliveries that their sender has not settled, and changes to them (core 2.6.13).

They outlive the broker where the target asked for that (terminus-durability unsettled-state).
"""

from typing import Final, final

from mypy_extensions import i64


@final
class StoredOutcome:
    """The outcome of one delivery, encoded, by its target and its tag.

    The target is known by the container-id and the name of its link. `owner` is the user whose link
    it is. `expiry_policy` and `timeout_s` say how long the target lasts.
    """

    def __init__(
        self,
        *,
        container_id: str,
        link: str,
        tag: bytes,
        outcome: bytes,
        owner: str,
        address: str,
        expiry_policy: str,
        timeout_s: i64,
    ) -> None:
        self.container_id: Final = container_id
        self.link: Final = link
        self.tag: Final = tag
        self.outcome: Final = outcome
        self.owner: Final = owner
        self.address: Final = address
        self.expiry_policy: Final = expiry_policy
        self.timeout_s: Final[i64] = timeout_s


TargetKey = tuple[str, str]
"""The key of a target: the container-id and the name of its link."""


@final
class UnsettledChanges:
    """Outcome changes of one `Batch`, by target and tag. The last change of an outcome counts.

    Targets in `ended` are removed first, with all of their outcomes. A value of None removes one.
    """

    def __init__(self) -> None:
        self.ended: Final[dict[TargetKey, None]] = {}
        self.outcomes: Final[dict[TargetKey, dict[bytes, StoredOutcome | None]]] = {}

    def keep(self, stored: StoredOutcome) -> None:
        """Add an outcome, or replace it."""
        self._of(stored.container_id, stored.link)[stored.tag] = stored

    def forget(self, container_id: str, link: str, tag: bytes) -> None:
        """Remove an outcome. No effect if it is gone already."""
        self._of(container_id, link)[tag] = None

    def end(self, container_id: str, link: str) -> None:
        """Remove all outcomes of a target. No effect if there are none."""
        self.ended[container_id, link] = None
        self.outcomes.pop((container_id, link), None)

    def _of(self, container_id: str, link: str) -> dict[bytes, StoredOutcome | None]:
        """Return the changes to outcomes of a target."""
        found = self.outcomes.get((container_id, link))
        if found is None:
            found = self.outcomes[container_id, link] = {}
        return found
