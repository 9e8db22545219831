"""The rows of the benchmark of the pipeline: the work of each, and how much of it is counted."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

from proton import Event, Message
from proton.handlers import MessagingHandler
from proton.reactor import Container, Copy
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812 - the usual name for it
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from pyspark_amqp.engines.spark_engine import SparkEngine
from pyspark_amqp.jobs.archiving import Archiving
from pyspark_amqp.jobs.auditing import Auditing
from pyspark_amqp.jobs.layout import EVENTS, MESSAGES
from tests.bench import local_rows
from tests.bench.spark_site import BODY, QUEUE, Site
from tests.bench.spark_table import LOOP, NO_AIM, Aim, Figure, Measured
from tests.interop.broker_process import BrokerProcess
from tests.spark.leasing import entity

BATCH: Final = 100_000
"""Maximum number of messages in a micro-batch, which a lease gives at once."""

NARROW: Final = "position BIGINT, JMSMessageID STRING, JMSTimestamp TIMESTAMP, bodyText STRING"
"""The schema of a user who needs few columns."""

LOOK_S: Final = 0.05
TELL_S: Final = 10.0
LOOP_ROWS_MAX: Final = 200_000
"""Maximum number of rows for the plain loop: more take minutes, at the same rate."""

Say = Callable[[str], None]


class Late(Exception):  # noqa: N818 - the row is only slow
    """A row took longer than it may."""


@dataclass(frozen=True)
class Run:
    """The surroundings in which a row is run."""

    site: Site
    say: Say
    limit_s: float

    @contextmanager
    def bounded(self) -> Iterator[None]:
        """Cancel Spark's work in the block after `limit_s` seconds, and raise Late then."""
        is_over = threading.Event()

        def cancel() -> None:
            is_over.set()
            self.site.spark.sparkContext.cancelAllJobs()

        timer = threading.Timer(self.limit_s, cancel)
        timer.start()
        try:
            yield
        except Exception as error:
            if is_over.is_set():
                raise Late(f"not done after {self.limit_s:.0f} s") from error
            raise
        finally:
            timer.cancel()


def _noop(run: Run, rows: DataFrame) -> Measured:
    """Read all rows, counted on the way, into Spark's sink that does nothing."""
    observed = Observation()
    counted = rows.observe(observed, F.count(F.lit(1)).alias("rows"))
    with run.bounded():
        begun = time.perf_counter()
        counted.write.format("noop").mode("overwrite").save()
        seconds = time.perf_counter() - begun
    return Measured(observed.get["rows"], seconds)


def _progress(query: StreamingQuery) -> tuple[int, float]:
    """Return the rows so far, and the seconds that their batches took."""
    told = [each for each in query.recentProgress if each.numInputRows]
    rows = sum(each.numInputRows for each in told)
    return rows, sum(each.durationMs["triggerExecution"] for each in told) / 1000


def _stream(run: Run, writer: DataStreamWriter, until: int | None = None) -> Measured:
    """Run a stream to its end, or until `until` rows have gone through."""
    checkpoint = mkdtemp(prefix="checkpoint-", dir=run.site.folder)
    begun = told = time.perf_counter()
    query = writer.option("checkpointLocation", checkpoint).start()
    while query.isActive:
        rows, inside = _progress(query)
        if until is not None and rows >= until:
            break
        now = time.perf_counter()
        if now - begun > run.limit_s:
            query.stop()
            raise Late(f"{rows:,} rows after {run.limit_s:.0f} s")
        if now - told > TELL_S:
            told = now
            run.say(f"{rows:,} rows so far")
        time.sleep(LOOK_S)
    seconds = time.perf_counter() - begun
    query.stop()
    if (failed := query.exception()) is not None:
        raise failed
    rows, inside = _progress(query)
    return Measured(rows, seconds, inside)


# ---- reading


def _where(run: Run, broker: BrokerProcess, *, by_http: bool) -> dict[str, str]:
    """Return the options that name the broker and the partitions, one for each executor."""
    given = {"url": broker.url, "numPartitions": str(run.site.executors)}
    return {**given, **({"managementUrl": broker.http_url} if by_http else {})}


def _browse(run: Run, *, by_http: bool) -> Measured:
    with run.site.broker(run.site.messages()) as broker:
        given = {**_where(run, broker, by_http=by_http), "mode": "browse", "address": QUEUE}
        return _noop(run, run.site.spark.read.format("amqp").options(**given).load())


def _lease(run: Run, *, by_http: bool, schema: str | None = None) -> Measured:
    with run.site.broker(run.site.messages()) as broker:
        given = {**_where(run, broker, by_http=by_http), "address": QUEUE}
        given["maxMessagesPerTrigger"] = str(BATCH)
        reader = run.site.spark.readStream.format("amqp").options(**given)
        rows = (reader if schema is None else reader.schema(schema)).load()
        return _stream(run, rows.writeStream.format("noop").trigger(availableNow=True))


def _events(run: Run, given: dict[str, str]) -> Measured:
    reader = run.site.spark.read.format("amqp").options(mode="events", **given)
    return _noop(run, reader.load())


def _events_by_adbc(run: Run) -> Measured:
    return _events(run, {"storeUrl": run.site.events_url})


def _events_by_http(run: Run) -> Measured:
    with run.site.broker(run.site.events()) as broker:
        return _events(run, _where(run, broker, by_http=True))


class _Loop(MessagingHandler):
    """A program as most users write it: Proton decodes each message, and its fields are read."""

    def __init__(self, url: str, count: int) -> None:
        super().__init__(prefetch=1000)
        self._url: Final = url
        self._count: Final = count
        self.rows = 0
        self.seconds = 0.0
        self._begun = 0.0
        self.seen: object = None

    def on_start(self, event: Event) -> None:
        event.container.create_receiver(f"{self._url}/{QUEUE}", options=Copy())
        self._begun = time.perf_counter()

    def on_message(self, event: Event) -> None:
        told = event.message
        assert isinstance(told, Message)
        self.seen = (
            *(told.id, told.correlation_id, told.creation_time, told.address, told.reply_to),
            *(told.subject, told.priority, told.durable, told.expiry_time, told.ttl),
            *(told.delivery_count, told.user_id, told.group_id, told.group_sequence),
            *(told.content_type, told.annotations, told.properties, told.body),
        )
        self.rows += 1
        if self.rows == self._count:
            self.seconds = time.perf_counter() - self._begun
            connection = event.connection
            assert connection is not None
            connection.close()


def _loop(run: Run) -> Measured:
    with run.site.broker(run.site.messages()) as broker:
        handler = _Loop(broker.url, min(run.site.rows, LOOP_ROWS_MAX))
        container = Container(handler)
        container.timeout = 1.0
        container.start()
        deadline = time.monotonic() + run.limit_s
        while container.process():
            if time.monotonic() > deadline:
                raise Late(f"{handler.rows:,} messages after {run.limit_s:.0f} s")
        return Measured(handler.rows, handler.seconds)


# ---- writing


def _value(kind: str, field: str, expression: str) -> str:
    nothing = {
        "boolean": "CAST(NULL AS BOOLEAN)",
        "long": "CAST(NULL AS BIGINT)",
        "double": "CAST(NULL AS DOUBLE)",
        "string": "CAST(NULL AS STRING)",
        "binary": "CAST(NULL AS BINARY)",
    }
    told = {**nothing, field: expression}
    parts = ", ".join(f"'{name}', {each}" for name, each in told.items())
    return f"named_struct('type', '{kind}', {parts})"


def _generated(run: Run) -> DataFrame:
    """Return Spark's own source with rows that are messages like those of the store."""
    texts = [
        (f"text{n}", _value("string", "string", f"concat('v', value, ' of {n}')")) for n in range(4)
    ]
    longs = [(f"long{n}", _value("long", "long", f"value + {n}")) for n in range(3)]
    doubles = [(f"double{n}", _value("double", "double", f"value / 7D + {n}")) for n in range(2)]
    flag = [("flag", _value("boolean", "boolean", "value % 2 = 0"))]
    entries = ", ".join(f"'{name}', {value}" for name, value in [*texts, *longs, *doubles, *flag])
    rate = run.site.spark.readStream.format("rate-micro-batch").options(
        rowsPerBatch=str(min(BATCH, run.site.rows))
    )
    return rate.load().selectExpr(
        "concat('ID:rate-', value) AS JMSMessageID",
        f"map({entries}) AS properties",
        f"'{BODY}' AS bodyText",
    )


def _rate(run: Run, writer: DataStreamWriter) -> Measured:
    return _stream(run, writer, until=run.site.rows)


def _sink(run: Run, delivery: str) -> Measured:
    with run.site.broker() as broker:
        rows = _generated(run).writeStream.format("amqp")
        done = _rate(run, rows.options(url=broker.url, address=QUEUE, delivery=delivery))
        there = int(str(entity(broker.url, "queue", QUEUE)["messages"]))
        # some messages of a batch that was under way may have arrived as well
        return done if there >= done.rows else replace(done, rows=there)


def _rate_noop(run: Run) -> Measured:
    return _rate(run, _generated(run).writeStream.format("noop"))


def _rate_parquet(run: Run) -> Measured:
    place = mkdtemp(prefix="parquet-", dir=run.site.folder)
    written = _generated(run).writeStream.format("parquet").option("compression", "zstd")
    return _rate(run, written.option("path", place))


# ---- jobs


def _archived(run: Run, what: str, broker: BrokerProcess, place: Path) -> Measured:
    job = Archiving.asked(
        place,
        _where(run, broker, by_http=True),
        whats=[what],
        address=QUEUE if what == MESSAGES else None,
        subscription=None,
        selector=None,
        mode=None,
        every=None,
    )
    engine = SparkEngine(run.site.spark)
    with run.bounded():
        begun = time.perf_counter()
        job.run(engine, run.say)
        seconds = time.perf_counter() - begun
    return Measured(job.sums[what].rows, seconds)


def _archive_of(run: Run, what: str) -> Path:
    return run.site.folder / f"archive-{what}"


def _archive(run: Run) -> Measured:
    with run.site.broker(run.site.messages()) as broker:
        return _archived(run, MESSAGES, broker, _archive_of(run, MESSAGES))


def _archive_events(run: Run) -> Measured:
    with run.site.broker(run.site.events()) as broker:
        return _archived(run, EVENTS, broker, _archive_of(run, EVENTS))


def _audit(run: Run) -> Measured:
    place = _archive_of(run, EVENTS)
    if not place.exists():
        run.say("archiving the event log, which does not count")
        _archive_events(run)
    job = Auditing(place, None, drained=True)
    engine = SparkEngine(run.site.spark)
    with run.bounded():
        begun = time.perf_counter()
        verdict, _ = job.run(engine, run.say)
        seconds = time.perf_counter() - begun
    unfinished = run.site.rows % 3 != 0  # the last message of the event log has no end
    if verdict.holds is unfinished:
        raise RuntimeError(f"the verdict is wrong: {verdict.broken}")
    return Measured(verdict.known.rows, seconds)


@dataclass(frozen=True)
class Row:
    """A row: its name and title, its work, and its aim.

    A row that `is_of_spark` needs Spark, started before.
    """

    name: str
    title: str
    work: Callable[[Run], Measured]
    aim: Aim = NO_AIM
    most: int | None = None
    is_of_messages: bool = False
    is_of_spark: bool = True

    def figure(self, run: Run) -> Figure:
        """Run the work and return its figure; an error is reported in the figure."""
        try:
            done = self.work(run)
        except Exception as error:  # noqa: BLE001 - the other rows are still measured
            text = (str(error).strip() or repr(error)).splitlines()[0]
            return Figure(self.name, self.title, 0, 0.0, problem=text, aim=self.aim)
        wanted = min(run.site.rows, self.most or run.site.rows)
        problem = "" if done.rows >= wanted else f"only {done.rows:,} of {wanted:,} rows came"
        told = (self.name, self.title, done.rows, done.seconds, done.batch_seconds)
        return Figure(*told, problem, self.aim, self.is_of_messages, done.cpu_seconds)


FAST: Final = Aim(per_second=50_000, times_loop=8)


def _reads(
    name: str,
    title: str,
    work: Callable[..., Measured],
    *,
    by_http: bool,
    schema: str | None = None,
    aim: Aim = NO_AIM,
) -> Row:
    """Return a row that reads messages through Spark, over AMQP or HTTP."""
    given: dict[str, Any] = {"by_http": by_http, **({} if schema is None else {"schema": schema})}
    way = "HTTP" if by_http else "AMQP"
    columns = "all columns" if schema is None else "four columns"
    return Row(
        f"{name}-{way.lower()}{'' if schema is None else '-narrow'}",
        f"{title}, {way}, {columns}",
        partial(work, **given),
        aim,
        is_of_messages=True,
    )


def _local(
    name: str,
    title: str,
    work: Callable[[Run], Measured],
    *,
    aim: Aim = NO_AIM,
    most: int | None = None,
) -> Row:
    """Return a row of a job on DuckDB, which is a command of its own."""
    return Row(name, f"{title}, DuckDB", work, aim, most, is_of_spark=False)


ROWS: Final = (
    Row(
        LOOP,
        "a plain python-qpid-proton loop, browsing",
        _loop,
        most=LOOP_ROWS_MAX,
        is_of_messages=True,
    ),
    Row("rate-noop", "Spark's rate source, no broker, noop sink", _rate_noop),
    Row("rate-parquet", "the same into Parquet, zstd", _rate_parquet),
    _reads("browse", "browse in a batch", _browse, by_http=False),
    _reads("browse", "browse in a batch", _browse, by_http=True),
    _reads("lease", "lease stream", _lease, by_http=False),
    _reads("lease", "lease stream", _lease, by_http=True, aim=FAST),
    _reads("lease", "lease stream", _lease, by_http=False, schema=NARROW),
    _reads("lease", "lease stream", _lease, by_http=True, schema=NARROW),
    Row("sink-staged", "rate source, staged sink", partial(_sink, delivery="staged")),
    Row("sink-plain", "rate source, at-least-once sink", partial(_sink, delivery="at-least-once")),
    Row("events-adbc", "event log, ADBC, broker stopped", _events_by_adbc, Aim(400_000)),
    Row("events-http", "event log, HTTP, broker running", _events_by_http, Aim(400_000)),
    Row("archive", "archive of messages, HTTP, Parquet", _archive),
    Row("archive-events", "archive of the event log, HTTP, Parquet", _archive_events),
    Row("audit", "audit of that archive", _audit, Aim(seconds_a_million=10)),
    _local(
        "duckdb-archive-events",
        "archive of the event log, HTTP, Parquet",
        local_rows.archive_events,
    ),
    _local(
        "duckdb-audit", "audit of that archive", local_rows.audit, aim=Aim(seconds_a_million=15)
    ),
    _local("duckdb-report", "report of that archive, with its audit", local_rows.report),
    _local(
        "duckdb-audit-few",
        "audit of three rows",
        local_rows.audit_few,
        aim=Aim(seconds=3),
        most=local_rows.FEW,
    ),
)
