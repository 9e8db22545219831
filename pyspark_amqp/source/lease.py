"""A lease of messages, as the driver of a stream holds one.

The broker hands messages to the lease in batches, one for each micro-batch. A batch that was made
is the same whenever it is asked for, until it is settled; so a batch that Spark repeats has the
rows that it had.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, cast, final

from pyspark_amqp.errors import BrokerError, FencedError, GoneError
from pyspark_amqp.options import Options
from pyspark_amqp.source.messages import Place
from pyspark_amqp.wire.broker_client import Management

LEASE: Final = "lease"

LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True)
class LeaseBatch:
    """What a batch has: messages by slice. Without any, none was made."""

    number: int
    slices: Sequence[int]

    @property
    def messages(self) -> int:
        return sum(self.slices)


class LeaseLostError(Exception):
    """A lease ran out, or was released: its messages went back to where they came from."""

    def __init__(self, lease: str, why: str) -> None:
        super().__init__(
            f"the lease {lease} is gone: {why}. Its messages went back to their places, so what "
            "was not settled comes again, and others may have had it meanwhile "
            "(option failOnLeaseLoss=false goes on with a new lease)"
        )


def new_lease_id(options: Options) -> str:
    """An id that nobody has had."""
    return (
        str(uuid.uuid4())
        if options.text(LEASE) is None
        else f"{options.text(LEASE)}/{uuid.uuid4()}"
    )


@final
class Lease:
    """One lease that this process has opened: whoever had it open before is fenced off."""

    def __init__(self, options: Options, name: str, place: Place) -> None:
        self.name: Final = name
        self.place: Final = place
        self._options: Final = options
        self._management: Final = Management(options)
        where: dict[str, Any] = (
            {"address": place.address}
            if place.subscription is None
            else {"subscription": place.subscription}
        )
        ttl_ms = options.number("leaseTtl")
        try:
            told = self._management.ask(
                "OPEN", LEASE, name, **where, selector=options.text("selector"), ttl_ms=ttl_ms
            )
        except BrokerError as error:
            self._management.close()
            if isinstance(error, GoneError):
                # a lease is begun where there is none, so it is the place that is not there
                raise BrokerError(str(error)) from error
            raise
        self.fencing_token: Final = cast("int", told["fencing_token"])
        self.batch_number = cast("int", told["batch"])
        self.now_ms: Final = cast("int", told["now_ms"])
        self.settled = cast("int", told["settled"])
        self._heart: Final = Heart(options, name, self.fencing_token, ttl_ms)

    def acquire(
        self, batch_number: int, *, max_messages: int, max_bytes: int, until_ms: int, wait_ms: int
    ) -> LeaseBatch:
        """The batch of that number: as it was made, or of what there is now, within limits."""
        told = self._asked(
            "ACQUIRE",
            batch=batch_number,
            max_messages=max_messages,
            max_bytes=max_bytes,
            slices=self._options.number("numPartitions"),
            arrived_until_ms=until_ms,
            wait_ms=wait_ms,
        )
        made = LeaseBatch(batch_number, list(cast("Sequence[int]", told.get("slices") or [])))
        if made.messages:
            self.batch_number = max(self.batch_number, batch_number)
        return made

    def settle(self, batch_number: int) -> None:
        """Accept all messages of all batches up to that one; the answer says that it is durable."""
        if batch_number > self.settled:
            self.settled = cast("int", self._asked("SETTLE", batch=batch_number)["settled"])

    def _asked(self, operation: str, **arguments: Any) -> dict[str, object]:
        self._heart.check()
        wait_ms = arguments.get("wait_ms", 0)
        return dict(
            self._management.ask(
                operation,
                LEASE,
                self.name,
                patience_ms=wait_ms,
                fencing_token=self.fencing_token,
                **arguments,
            )
        )

    def close(self) -> None:
        """Let go of connections. The lease stays: whoever goes on with the query opens it."""
        self._heart.stop()
        self._management.close()


@final
class Heart:
    """Renews a lease from a thread of its own, however long a batch takes."""

    def __init__(self, options: Options, name: str, fencing_token: int, ttl_ms: int) -> None:
        self._options: Final = options
        self._name: Final = name
        self._fencing_token: Final = fencing_token
        self._every_s: Final = ttl_ms / 3000
        self._stopped: Final = threading.Event()
        self._failure: BrokerError | None = None
        if ttl_ms > 0:
            threading.Thread(target=self._beat, name=f"lease {name}", daemon=True).start()

    def _beat(self) -> None:
        management = Management(self._options)
        while not self._stopped.wait(self._every_s):
            try:
                management.ask("RENEW", LEASE, self._name, fencing_token=self._fencing_token)
            except (GoneError, FencedError) as error:
                self._failure = error
                break
            except BrokerError as error:
                # it may be there again before the lease runs out
                LOG.warning("lease %s was not renewed: %s", self._name, error)
        management.close()

    def check(self) -> None:
        """Raise what the broker has said of the lease."""
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        self._stopped.set()
