"""The command `jms-broker pipeline replay`: its checks, its sending, its summary."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark_amqp.jobs.layout import MESSAGES, Archive

if TYPE_CHECKING:
    from pyspark_amqp.engines.engine import Engine, Table
    from pyspark_amqp.jobs.replay import Plan


@dataclass(frozen=True)
class Replaying:
    """One run of the replay job; `broker` has the options of the sink."""

    place: Path
    broker: Mapping[str, str]
    to: str | None
    since: datetime | None
    until: datetime | None
    addresses: tuple[str, ...]
    subscription: str | None
    selector: str | None
    ids: tuple[str, ...]

    def check(self, *, dry_run: bool) -> None:
        """Raise an error if anything is wrong, before Spark starts; a dry run needs no broker."""
        from pyspark_amqp.option_table import Use
        from pyspark_amqp.options import read_options
        from pyspark_amqp.wire.connection import connected

        Archive(self.place).check(MESSAGES)
        given = {
            **self.broker,
            "replay": "raw",
            **({} if self.to is None else {"address": self.to}),
        }
        options = read_options(given, Use.SINK)
        if not dry_run:
            with connected(options):
                pass

    def run(
        self,
        engine: Engine,
        say: Callable[[str], None],
        *,
        rate: float | None,
        skip: int,
        dry_run: bool,
    ) -> dict[str, object]:
        """Send the chosen messages, unless `dry_run`; return the summary.

        `rate` is in messages per second, None for all at once. The first `skip` messages are left
        out.
        """
        from pyspark_amqp.jobs.replay import ReplayChoice, chosen, plan
        from pyspark_amqp.jobs.selector import condition

        choice = ReplayChoice(
            self.since,
            self.until,
            self.addresses,
            self.subscription,
            None if self.selector is None else condition(self.selector),
            self.ids,
        )
        say("reading the archive")
        messages = chosen(Archive(self.place).read(engine, MESSAGES), choice).kept()
        planned = plan(messages, self.ids)
        planned.check(is_one_batch=rate is None and self._is_staged, skip=skip)
        if dry_run:
            return {"would_replay": planned.messages, **self._told(planned)}
        begin = time.monotonic()
        say(f"sending {planned.messages:,} messages")
        self._send(messages, planned.messages, rate, skip, say)
        seconds = max(time.monotonic() - begin, 0.001)
        sent = planned.messages - skip
        return {
            "replayed": sent,
            **self._told(planned),
            "seconds": round(seconds, 1),
            "messages_per_second": round(sent / seconds, 1),
        }

    @property
    def _is_staged(self) -> bool:
        return self.broker.get("delivery", "staged") == "staged"

    def _told(self, planned: Plan) -> dict[str, object]:
        return {
            "to": self.to or "where each was",
            "from": ", ".join(f"{name} ({count})" for name, count in planned.addresses.items()),
            "bytes": planned.bytes,
            "first": planned.first,
            "last": planned.last,
        }

    def _send(
        self,
        messages: Table,
        total: int,
        rate: float | None,
        skip: int,
        say: Callable[[str], None],
    ) -> None:
        from pyspark_amqp.jobs.replay import numbered, paced, send, slice_of

        options = dict(self.broker)
        if rate is None:
            send(messages, options, self.to)
            return
        cut = numbered(messages).kept()

        def put(first: int, behind: int) -> None:
            send(slice_of(cut, first, behind), options, self.to, "number")

        paced(
            total,
            rate,
            put,
            skip=skip,
            now=time.monotonic,
            wait=time.sleep,
            tell=partial(_tell, say, total),
        )


def _tell(say: Callable[[str], None], total: int, count: int) -> None:
    say(f"{count:,} of {total:,} messages")
