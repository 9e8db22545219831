"""A lease of messages, as held by the driver of a stream.

The broker assigns messages to the lease in batches, one for each micro-batch. A batch is the same,
however often it is requested, until it is settled; so a batch that Spark repeats has the rows that
it had.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, cast, final

from pyspark_amqp.errors import BrokerError, FencedError, GoneError
from pyspark_amqp.one_line import UserError
from pyspark_amqp.options import Options
from pyspark_amqp.source.messages import Place
from pyspark_amqp.wire.broker_client import Management

LEASE: Final = "lease"

LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True)
class LeaseBatch:
    """The number of messages in each slice of a batch. Without messages no batch was made."""

    number: int
    slices: Sequence[int]

    @property
    def messages(self) -> int:
        return sum(self.slices)


class LeaseLostError(UserError):
    """An error because a lease expired or was released: its messages are back in their queue."""

    def __init__(self, lease: str, why: str) -> None:
        super().__init__(
            f"the lease {lease} is gone: {why}. Its messages went back to their places, so what "
            "was not settled comes again, and others may have had it meanwhile "
            "(option failOnLeaseLoss=false goes on with a new lease)"
        )


def new_lease_id(options: Options) -> str:
    """Return an id that no lease has had; it begins with the option `lease`, if that is set."""
    return (
        str(uuid.uuid4())
        if options.text(LEASE) is None
        else f"{options.text(LEASE)}/{uuid.uuid4()}"
    )


@final
class Lease:
    """A lease that this process has opened: a process that had it open before is fenced off."""

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
                # a missing lease is begun, so it is the place that does not exist
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
        """Return the batch `batch_number`: as it was made, or a new one within these limits.

        0 is no limit for `max_bytes` and `until_ms` (time of arrival). The broker waits up to
        `wait_ms` for messages.
        """
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
        """Accept all messages of all batches up to that one; this is durable when it returns."""
        if batch_number > self.settled:
            self.settled = cast("int", self._asked("SETTLE", batch=batch_number)["settled"])

    def behind(self) -> dict[str, object]:
        """Return the messages of its queue or subscription that wait for a batch.

        `messagesBehind` are ready, `oldestAgeMs` is the age of the oldest of them, and `queueBytes`
        the size of all messages there, in any state.
        """
        kind = "queue" if self.place.subscription is None else "subscription"
        told = self._management.ask("READ", kind, self.place.source)
        return {
            "messagesBehind": told["messages"],
            "oldestAgeMs": told["oldest_ms"],
            "queueBytes": told["bytes"],
        }

    @property
    def state(self) -> str:
        """Return `open`, or `lost` if the broker has refused to renew the lease."""
        return "open" if self._heart.beats else "lost"

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
        """Close the connections. The lease stays; the driver that continues the query opens it."""
        self._heart.stop()
        self._management.close()


@final
class Heart:
    """The thread that renews a lease, three times in its time to live, however long a batch takes.

    A lease whose `ttl_ms` is 0 never expires and is not renewed.
    """

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
                # the broker may be back before the lease expires
                LOG.warning("lease %s was not renewed: %s", self._name, error)
        management.close()

    def check(self) -> None:
        """Raise the error by which the broker has refused to renew the lease, if it has."""
        if self._failure is not None:
            raise self._failure

    @property
    def beats(self) -> bool:
        """Return whether the broker has not refused to renew the lease."""
        return self._failure is None

    def stop(self) -> None:
        self._stopped.set()
