"""A running broker as the doctor asks it: over `$management`, on one connection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from proton.utils import BlockingConnection

from broker.cli.requests import Record, RefusalError, Requests
from broker.compiled import BUILD
from broker.doctor.checked_broker import RunningBroker


class AnsweringBroker(RunningBroker):
    """A broker that answers on an open connection."""

    def __init__(self, connection: BlockingConnection) -> None:
        assert connection.conn is not None, "the connection is open"
        told = connection.conn.remote_properties or {}
        self._build: Final = str(told.get(BUILD, ""))
        self._requests: Final = Requests(connection)

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
