"""A running broker as the doctor asks it: by requests to its management."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from broker.cli.requests import Record, RefusalError, Requests
from broker.doctor.checked_broker import RunningBroker


class AnsweringBroker(RunningBroker):
    """A broker that answers requests."""

    def __init__(self, requests: Requests) -> None:
        self._build: Final = requests.build()
        self._requests: Final = requests

    @property
    def build(self) -> str:
        return self._build

    def records(self, kind: str) -> Sequence[Record] | None:
        try:
            return list(self._requests.records(kind))
        except RefusalError:
            return None  # the user lacks the right, or the broker is older

    def ask(self, operation: str, kind: str, name: str) -> Record | None:
        try:
            return self._requests.ask(operation, kind, name)
        except RefusalError:
            return None
