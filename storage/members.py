"""A broker of a group as the group's store knows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final


@final
class StoredMember:
    """A member, and the host and port at which clients reach it, by kind of listener.

    `is_up`: it has a session with the store. `wants_to_lead`: it is preferred to the one that
    leads, and has been ready for a while.
    """

    def __init__(
        self,
        name: str,
        addresses: Mapping[str, tuple[str, int]],
        *,
        is_up: bool = True,
        wants_to_lead: bool = False,
    ) -> None:
        self.name: Final = name
        self.addresses: Final = addresses
        self.is_up: Final = is_up
        self.wants_to_lead: Final = wants_to_lead
