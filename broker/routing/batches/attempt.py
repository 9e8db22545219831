"""An attempt of a sink's task: its stages, and whether memory alone has their messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from broker.message import Message
from storage.batch import Batch

if TYPE_CHECKING:
    from broker.routing.batches.staged_transaction import StagedTransaction


@final
class Attempt:
    """The stages of one attempt of a task, one for each address that it sends to.

    If it `is_stored`, the store has the messages of all of them, and the numbers of the messages
    are in the order in which these arrived, as TRIM needs it. Else memory alone has all of them.
    """

    def __init__(self) -> None:
        self.stages: Final[dict[int, StagedTransaction]] = {}
        self.is_stored = False

    def store_kept(self, batch: Batch) -> None:
        """Note the messages for the store that are only in memory, as they arrived."""
        if self.is_stored:
            return
        self.is_stored = True
        kept: list[tuple[int, StagedTransaction, Message]] = []
        for stage in self.stages.values():
            kept += stage.take_kept()
        kept.sort(key=_arrival)
        for _, stage, message in kept:
            stage.store(message, batch)


def _arrival(kept: tuple[int, StagedTransaction, Message]) -> int:
    return kept[0]
