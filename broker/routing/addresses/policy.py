"""Settings of addresses, and the choice of the pattern that applies to an address."""

from fnmatch import fnmatchcase
from typing import Final, final

from mypy_extensions import i64

from broker.routing.addresses.prefixes import Prefixes

BLOCK: Final = "block"
REJECT: Final = "reject"
DROP_OLDEST: Final = "drop-oldest"
"""Actions of a full queue: give producers no credit, reject their messages, or drop the oldest
messages to make room."""


@final
class AddressPolicy:
    """The settings of one address. `0` means no limit, an empty address no node.

    But `duplicate_window` 0 is no duplicate detection, `auto_delete_after_ms` 0 deletes nothing.
    """

    def __init__(
        self,
        *,
        auto_create: bool = True,
        auto_delete_after_ms: int = 0,
        dead_letter: str = "DLQ",
        expiry: str = "",
        max_delivery_count: int = 20,
        redelivery_delay_ms: int = 0,
        redelivery_backoff: float = 1.0,
        redelivery_delay_max_ms: int = 0,
        max_messages: int = 0,
        max_bytes: int = 0,
        full: str = BLOCK,
        exclusive: bool = False,
        duplicate_window: int = 0,
        duplicate_window_ms: int = 0,
        deliver_before_commit: bool = True,
        event_log: bool = False,
        dead_letter_properties: bool = False,
    ) -> None:
        self.auto_create: Final = auto_create
        self.auto_delete_after_ms: Final[i64] = auto_delete_after_ms
        self.dead_letter: Final = dead_letter
        self.expiry: Final = expiry
        self.max_delivery_count: Final[i64] = max_delivery_count
        self.redelivery_delay_ms: Final[i64] = redelivery_delay_ms
        self.redelivery_backoff: Final = redelivery_backoff
        self.redelivery_delay_max_ms: Final[i64] = redelivery_delay_max_ms
        self.max_messages: Final[i64] = max_messages
        self.max_bytes: Final[i64] = max_bytes
        self.full: Final = full
        self.exclusive: Final = exclusive
        self.duplicate_window: Final[i64] = duplicate_window
        self.duplicate_window_ms: Final[i64] = duplicate_window_ms
        self.deliver_before_commit: Final = deliver_before_commit
        self.event_log: Final = event_log
        self.dead_letter_properties: Final = dead_letter_properties
        self.is_limited: Final = max_messages > 0 or max_bytes > 0


@final
class Policies:
    """The configured patterns in their order; the first that matches an address applies.

    `declared` are single nodes by kind and address, which precede any pattern. Both are without
    `prefixes`. Clients may create `auto_create_max` nodes by naming them; 0 is no limit.
    """

    def __init__(
        self,
        patterns: list[tuple[str, AddressPolicy]],
        default: AddressPolicy,
        default_kind: str,
        *,
        declared: dict[tuple[str, str], AddressPolicy] | None = None,
        prefixes: Prefixes | None = None,
        auto_create_max: i64 = 0,
    ) -> None:
        self._patterns: Final = patterns
        self._default: Final = default
        self.default_kind: Final = default_kind
        self.auto_create_max: Final[i64] = auto_create_max
        self.prefixes: Final = Prefixes() if prefixes is None else prefixes
        self.declared: Final[dict[tuple[str, str], AddressPolicy]] = declared or {}

    def of(self, address: str, kind: str = "") -> AddressPolicy:
        """Return the policy of the node of that address and kind, or of the address alone."""
        declared = self.declared.get((kind, address))
        if declared is not None:
            return declared
        for pattern, policy in self._patterns:
            if fnmatchcase(address, pattern):
                return policy
        return self._default
