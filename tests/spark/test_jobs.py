"""The jobs against a running broker: archive, audit, report, replay, as the commands run them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest
from proton import Message
from proton.utils import BlockingConnection
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from pyspark_amqp.engines.engine import Engine
from pyspark_amqp.engines.spark_engine import SparkEngine
from pyspark_amqp.errors import ReplayError
from pyspark_amqp.jobs.archiving import Archiving
from pyspark_amqp.jobs.auditing import Auditing, lines_of, notes_of, table_of
from pyspark_amqp.jobs.findings import CHECKS, LOSS
from pyspark_amqp.jobs.layout import EVENTS, MESSAGES, Archive
from pyspark_amqp.jobs.replaying import Replaying
from pyspark_amqp.jobs.report import gather
from pyspark_amqp.jobs.report_page import write
from pyspark_amqp.jobs.statements import query
from pyspark_amqp.option_table import Use
from pyspark_amqp.options import read_options
from pyspark_amqp.wire.broker_client import opened
from tests.interop.broker_process import BrokerProcess
from tests.spark.test_archive import read_by_duckdb

SETTINGS: Final = """\
store = "sqlite:///store.db"

[[address]]
pattern = "*"
event_log = true
"""

AS_DELTA: Final = {"form": "delta"} if find_spec("deltalake") is not None else {}
AS_ICEBERG: Final = {"form": "iceberg"} if find_spec("pyiceberg") is not None else {}
"""The formats of archives that are tables, too, if the libraries for them are installed."""

COUNT: Final = 40


@pytest.fixture(scope="module")
def journaling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Yield a broker that keeps an event log of everything."""
    process = BrokerProcess(tmp_path_factory.mktemp("journaling"), settings=SETTINGS)
    yield process
    assert process.running, f"the broker died, see {process.log}"
    assert process.stop() == 0


@dataclass
class Told:
    """The lines that the jobs print while they run."""

    lines: list[str] = field(default_factory=list)

    def say(self, text: str) -> None:
        self.lines.append(text)


def fill(broker: BrokerProcess, address: str) -> None:
    """Send messages with properties of all kinds; every fourth is urgent."""
    connection = BlockingConnection(broker.url, timeout=30)
    sender = connection.create_sender(address)
    for number in range(COUNT):
        message = Message(
            body=f"text {number}" if number % 2 else number.to_bytes(300, "big"),
            id=f"ID:{address}-{number}",
            properties={"n": number, "colour": "red" if number % 3 == 0 else "blue"},
            durable=number % 5 != 0,
            priority=9 if number % 4 == 0 else 4,
            group_id=f"g{number % 3}",
        )
        sender.send(message)
    connection.close()


def received(broker: BrokerProcess, address: str, count: int) -> list[Message]:
    """Consume `count` messages and return them."""
    connection = BlockingConnection(broker.url, timeout=30)
    receiver = connection.create_receiver(address, credit=count)
    found = []
    for _ in range(count):
        found.append(receiver.receive(timeout=30))
        receiver.accept()
    connection.close()
    return found


def archive(
    engine: Engine, broker: BrokerProcess, place: Path, *whats: str, **asked: str
) -> dict[str, object]:
    named: dict[str, str | None] = dict.fromkeys(("address", "subscription", "selector", "mode"))
    job = Archiving.asked(place, {"url": broker.url}, whats=whats, every=None, **{**named, **asked})
    job.check(engine.name)
    job.run(engine, Told().say)
    return job.summary()


NAMES: Final = ["address", "amqp", "position", "enqueuedAt"]


def in_delta(place: Path) -> pa.Table:
    """Return the columns NAMES of messages as Delta's library reads them."""
    from deltalake import DeltaTable

    return DeltaTable(place / MESSAGES).to_pyarrow_table(columns=NAMES)


def in_iceberg(place: Path) -> pa.Table:
    """Return the columns NAMES of messages as Iceberg's library reads them."""
    from pyiceberg.catalog.sql import SqlCatalog

    with SqlCatalog("archive", uri=f"sqlite:///{place}/_iceberg/catalog.db") as catalog:
        scan = catalog.load_table(("archive", MESSAGES)).scan(selected_fields=tuple(NAMES))
        return scan.to_arrow().select(NAMES)


def check_tables(place: Path) -> None:
    """Check that the tables of messages have the rows of the files, if there are any."""
    in_files = read_by_duckdb(
        Archive(place), MESSAGES, "address, amqp, position, epoch_us(enqueuedAt)"
    )
    for form, read in ((AS_DELTA, in_delta), (AS_ICEBERG, in_iceberg)):
        if form:
            rows = read(place)
            found = rows.append_column("us", rows["enqueuedAt"].cast("int64")).drop(["enqueuedAt"])
            assert sorted(tuple(row.values()) for row in found.to_pylist()) == in_files, form


def replaying(broker: BrokerProcess, place: Path, to: str | None, **asked: object) -> Replaying:
    given: dict[str, object] = {
        **dict.fromkeys(("since", "until", "subscription", "selector")),
        "addresses": ("orders",),
        "ids": (),
    }
    return Replaying(place, {"url": broker.url}, to=to, **{**given, **asked})  # type: ignore[arg-type]


def run(job: Replaying, engine: Engine, **how: object) -> dict[str, object]:
    given: dict[str, object] = {"rate": None, "skip": 0, "dry_run": False}
    job.check(dry_run=bool(how.get("dry_run")))
    return job.run(engine, Told().say, **{**given, **how})  # type: ignore[arg-type]


@pytest.mark.requirement("PIP-60")
@pytest.mark.requirement("PIP-61")
@pytest.mark.requirement("PIP-63")
@pytest.mark.requirement("PIP-66")
@pytest.mark.requirement("PIP-67")
@pytest.mark.requirement("PIP-75")
@pytest.mark.requirement("PIP-80")
@pytest.mark.requirement("PIP-81")
def test_from_the_broker_into_the_archive_and_back(
    engine: Engine, journaling: BrokerProcess, tmp_path: Path
) -> None:
    place = tmp_path / "archive"
    orders, invoices, again = (f"{name}-{engine.name}" for name in ("orders", "invoices", "again"))
    fill(journaling, orders)
    fill(journaling, invoices)
    received(journaling, invoices, 10)

    summed = archive(engine, journaling, place, MESSAGES, address=invoices, **AS_DELTA)
    assert summed["messages"] == COUNT - 10
    repeated = archive(engine, journaling, place, MESSAGES, address=invoices)
    assert repeated["messages"] == 0, "what stays in the broker is archived once"
    leased = {"address": orders, "mode": "lease"}
    summed = archive(engine, journaling, place, MESSAGES, EVENTS, **leased, **AS_ICEBERG)
    assert summed["messages"] == COUNT
    assert isinstance(summed["events"], int)
    # enqueued twice COUNT, delivered and accepted ten times, leased and settled COUNT times
    assert summed["events"] >= 4 * COUNT + 2 * 10
    repeated = archive(engine, journaling, place, MESSAGES, address=orders, mode="lease")
    assert repeated["messages"] == 0, "what was leased and archived is settled"
    check_tables(place)

    told = Told()
    audit = Auditing(place, {"url": journaling.url}, addresses=(orders, invoices))
    audit.check()
    verdict, offending = audit.run(engine, told.say)
    assert verdict.holds, lines_of(offending, 9)
    assert verdict.messages == verdict.judged[LOSS] == 2 * COUNT
    assert verdict.open == {"there": COUNT - 10}
    assert told.lines[-1] == "looking into 1 queues"
    assert [row["verdict"] for row in table_of(verdict)] == ["holds"] * len(CHECKS)
    assert f"{COUNT - 10} have not ended: in their queues" in notes_of(verdict)

    for source in (Auditing(place, None, from_row=9), Auditing(None, audit.broker, from_row=9)):
        events = source.rows(engine)
        assert query("SELECT min(id) AS id FROM {events}", events=events).rows() == [{"id": 9}]

    report = gather(Auditing(place, None, addresses=(orders,)).rows(engine))
    assert report is not None
    (told_of,) = report.addresses
    assert tuple(told_of[name] for name in ("enqueued", "accepted", "redelivered")) == (
        COUNT,
        COUNT,
        0,
    )
    assert all(path.stat().st_size for path in write(report, tmp_path / "report"))

    dry = run(replaying(journaling, place, again, addresses=(orders,)), engine, dry_run=True)
    assert dry["would_replay"] == COUNT
    assert (
        run(replaying(journaling, place, again, addresses=(orders,)), engine)["replayed"] == COUNT
    )
    other = tmp_path / "other"
    archive(engine, journaling, other, MESSAGES, address=again)
    order = "position % 10 desc, position"
    sent, back = (
        read_by_duckdb(Archive(each), MESSAGES, "amqp", f"address = '{address}'", order)
        for each, address in ((place, orders), (other, again))
    )
    assert len(sent) == COUNT
    assert back == sent, "bit by bit, in their order"


@pytest.mark.requirement("PIP-77")
def test_a_job_of_a_chain_runs_on_after_streams_of_the_job_before_have_ended(
    spark: SparkSession, journaling: BrokerProcess, tmp_path: Path
) -> None:
    engine = SparkEngine(spark)
    fill(journaling, "chained")
    archive(engine, journaling, tmp_path / "one", EVENTS)
    named: dict[str, None] = dict.fromkeys(("address", "subscription", "selector", "mode"))
    asked = {"url": journaling.url}
    job = Archiving.asked(tmp_path / "two", asked, whats=[EVENTS], every="1 second", **named)

    def ended(text: str) -> None:
        raise LookupError(f"it has said: {text}")

    with pytest.raises(StreamingQueryException, match="it has said: events: batch 0"):
        job.run(engine, ended)


@pytest.mark.requirement("PIP-67")
@pytest.mark.requirement("PIP-68")
def test_some_of_it_again(engine: Engine, journaling: BrokerProcess, tmp_path: Path) -> None:
    some, paced, by_id = (f"{name}-{engine.name}" for name in ("some", "paced", "by-id"))
    fill(journaling, some)
    archive(engine, journaling, tmp_path, MESSAGES, address=some)
    chosen = {"addresses": (some,), "selector": "n < 10 AND colour = 'red'"}
    begin = time.monotonic()
    told = run(replaying(journaling, tmp_path, paced, **chosen), engine, rate=2.0)
    assert told["replayed"] == 4
    assert time.monotonic() - begin >= 1, "two a second"
    found = received(journaling, paced, 4)
    assert sorted(str(message.id) for message in found) == [f"ID:{some}-{n}" for n in (0, 3, 6, 9)]
    ids = (f"ID:{some}-39", f"ID:{some}-1")
    run(replaying(journaling, tmp_path, by_id, addresses=(), ids=ids), engine)
    assert [message.id for message in received(journaling, by_id, 2)] == list(reversed(ids))
    with pytest.raises(ReplayError, match="1 of the ids are not in the archive: ID:no"):
        run(replaying(journaling, tmp_path, None, addresses=(), ids=("ID:no", *ids)), engine)
    with pytest.raises(ReplayError, match="no archived message is meant"):
        run(replaying(journaling, tmp_path, None, addresses=("none",)), engine)


@pytest.mark.requirement("PIP-63")
def test_what_waits_for_a_subscriber_without_a_name_is_not_lost(
    duckdb_engine: Engine, journaling: BrokerProcess
) -> None:
    options = read_options({"url": journaling.url, "mode": "events"}, Use.BATCH)
    with opened(options) as management:
        management.ask("CREATE", "topic", "news")
    connection = BlockingConnection(journaling.url, timeout=30)
    connection.create_receiver("news", credit=0)
    connection.create_sender("news").send(Message(body="new", durable=True))
    audit = Auditing(None, {"url": journaling.url}, addresses=("news",))
    audit.check()
    verdict, offending = audit.run(duckdb_engine, Told().say)
    assert verdict.holds, lines_of(offending, 9)
    assert verdict.open == {"unseen": 1}
    connection.close()
