"""The addresses that a case uses: its own, and those that the user's options name."""

from __future__ import annotations

from typing import Final

from .verdict import Kind, NotApplicable, Options


class CaseAddresses:
    """The addresses and names of one case.

    `address` is a queue that only this case uses, or the user's; NotApplicable is raised for other
    addresses whose option was not given. `unique` makes names unique to the case; it is `address`
    unless it is given.
    """

    def __init__(self, options: Options, address: str, *, unique: str = "") -> None:
        self.options: Final = options
        self.address: Final = address
        self._unique: Final = unique or address

    def name(self, text: str) -> str:
        """Return `text` made unique to this case, for container-ids and link names."""
        return f"{text}-{self._unique}"

    @property
    def missing_address(self) -> str:
        """An address that does not exist and that the broker refuses to create."""
        if self.options.missing_address is None:
            raise NotApplicable(
                "needs --missing-address: an address that the broker refuses", Kind.OPTION_MISSING
            )
        return self.options.missing_address

    @property
    def blocking_address(self) -> str:
        """A queue that gives no credit once it is full, after less than a thousand messages."""
        if self.options.blocking_address is None:
            raise NotApplicable(
                "needs --blocking-address: a small queue that gives no credit", Kind.OPTION_MISSING
            )
        return self.options.blocking_address

    @property
    def rejecting_address(self) -> str:
        """A queue that rejects messages once it is full, after less than a thousand."""
        if self.options.rejecting_address is None:
            raise NotApplicable(
                "needs --rejecting-address: a small queue that rejects", Kind.OPTION_MISSING
            )
        return self.options.rejecting_address

    @property
    def topic_address(self) -> str:
        """The address of a topic that only this case uses."""
        return self.options.topic_address(f"topic.{self._unique}")

    @property
    def dead_letter_addresses(self) -> tuple[str, str]:
        """A queue, and a small one that rejects, to which the former's dead letters are moved."""
        address, _, dead_letters = (self.options.dead_letter_address or "").partition("=")
        if not dead_letters:
            raise NotApplicable(
                "needs --dead-letter-address: QUEUE=SMALL_QUEUE, where its dead letters go",
                Kind.OPTION_MISSING,
            )
        return address, dead_letters

    @property
    def deduplicating_address(self) -> str:
        """A queue that discards messages whose message-id it has had."""
        if self.options.deduplicating_address is None:
            raise NotApplicable(
                "needs --deduplicating-address: a queue that discards duplicates",
                Kind.OPTION_MISSING,
            )
        return self.options.deduplicating_address
