"""The rows of the table in their order: titles, figures, and the marks they should reach."""

from typing import Final

from tests.bench.durable import (
    QUEUES,
    durable,
    durable_1m,
    durable_100k,
    durable_fill,
    durable_fixed,
    durable_many,
    durable_small,
    slow_disk,
)
from tests.bench.filling import fill
from tests.bench.flow import (
    CONSUMERS,
    PER_COMMIT,
    SUBSCRIBERS,
    TOPICS,
    competing,
    fixed,
    large,
    relay,
    scheduled,
    shared,
    small,
    tls_fixed,
    tls_large,
    tls_small,
    topic,
    topics,
    transacted,
    ws_small,
)
from tests.bench.in_process import attach_rules, engine, selectors
from tests.bench.jms import PRODUCERS, jms_many, jms_sync, jms_transacted
from tests.bench.resident import idle, memory, start
from tests.bench.server import AMQPS, LOGINS, WS
from tests.bench.strangers import (
    BAD_LOGINS_PER_SECOND,
    HANDSHAKES_PER_SECOND,
    bad_logins,
    handshakes,
    tls_idle,
)
from tests.bench.work import Measure, Work

PER_SECOND: Final = "messages/s"
CPU: Final = "broker's CPU, µs/message"
SYNCS: Final = Measure("syncs_per_1000", "syncs per 1,000 messages", None, digits=2)
RSS: Final = Measure("rss_mib", "resident memory afterwards, MiB", 150, digits=1)
WRITTEN: Final = Measure("written_per_message", "bytes written per message", None)

STRANGERS: Final = (
    Work(
        "tls-idle",
        "idle connections over TLS 1.3, a session each; one handshake",
        (
            Measure("kib_each", "KiB per connection", 64, digits=1),
            Measure("handshake_ms", "broker's CPU, ms/handshake", 1.2, digits=2),
        ),
        tls_idle,
        ours=True,
        fresh=True,
        listener=AMQPS,
    ),
    Work(
        "handshakes",
        f"10,000 messages/s fixed, 100 B, beside {HANDSHAKES_PER_SECOND} TLS handshakes/s",
        (
            Measure("p99_ratio", "p99 beside them / p99 without", 2, digits=2),
            Measure("p99_us", "p99 without, µs", None),
            Measure("beside_p99_us", "p99 beside them, µs", None),
        ),
        handshakes,
        ours=True,
        listener=AMQPS,
        median_of="p99_ratio",
    ),
    Work(
        "bad-logins",
        f"10,000 messages/s fixed, 100 B, beside {BAD_LOGINS_PER_SECOND:,} bad logins/s",
        (
            Measure("p99_ratio", "p99 beside them / p99 without", 2, digits=2),
            Measure("p99_us", "p99 without, µs", None),
            Measure("beside_p99_us", "p99 beside them, µs", None),
        ),
        bad_logins,
        ours=True,
        fresh=True,
        listener=LOGINS,
        median_of="p99_ratio",
    ),
    Work(
        "attach-rules",
        "rights at an attach by 1,000 rules",
        (
            Measure("plain_us", "CPU, µs/decision, no wildcard", 20, digits=1),
            Measure("wildcard_us", "CPU, µs/decision, wildcards", 500, digits=0),
            Measure("slowest_ms", "slowest of 600 patterns, ms", 5, digits=2),
            Measure("tangled_ms", "the same by tangled rules, ms", 5, digits=2),
            Measure("attach_us", "a whole attach of a sender, CPU, µs", None, digits=1),
            Measure("attach_without_us", "the same without rules, CPU, µs", None, digits=1),
        ),
        attach_rules,
        alone=True,
    ),
)

DURABLE: Final = (
    Work(
        "durable",
        "durable 1→1 keeping up, 1 KiB",
        (
            Measure("per_second", PER_SECOND, 130_000, more_is_better=True),
            Measure("cpu_us", CPU, 6.0, digits=2),
            SYNCS,
            WRITTEN,
        ),
        durable,
    ),
    Work(
        "durable-small",
        "durable 1→1 keeping up, 100 B",
        (
            Measure("per_second", PER_SECOND, 200_000, more_is_better=True),
            Measure("cpu_us", CPU, 3.0, digits=2),
            SYNCS,
            WRITTEN,
        ),
        durable_small,
    ),
    Work(
        "durable-many",
        f"durable, {QUEUES} queues 1→1 keeping up, 1 KiB",
        (
            Measure("per_second", PER_SECOND, 200_000, more_is_better=True),
            Measure("cpu_us", CPU, 4.0, digits=2),
            SYNCS,
            WRITTEN,
        ),
        durable_many,
    ),
    Work(
        "durable-100k",
        "durable 1→1 keeping up, 100 kB",
        (
            Measure("per_second", PER_SECOND, 4_500, more_is_better=True),
            Measure("cpu_us", CPU, 220, digits=1),
            SYNCS,
            WRITTEN,
            RSS,
        ),
        durable_100k,
    ),
    Work(
        "durable-1m",
        "durable 1→1 keeping up, 1 MB",
        (
            Measure("per_second", PER_SECOND, 450, more_is_better=True),
            Measure("cpu_us", CPU, 2_200, digits=1),
            SYNCS,
            WRITTEN,
            RSS,
        ),
        durable_1m,
    ),
    Work(
        "durable-fill",
        "durable, 1 KiB: producer alone (fill), then consumer alone (drain)",
        (
            Measure("per_second", "fill, messages/s", 90_000, more_is_better=True),
            Measure("cpu_us", f"fill, {CPU}", None, digits=2),
            SYNCS,
            WRITTEN,
            Measure("drain_per_second", "drain, messages/s", 180_000, more_is_better=True),
            Measure("drain_cpu_us", f"drain, {CPU}", None, digits=2),
            Measure("drain_syncs_per_1000", "drain, syncs per 1,000 messages", None, digits=2),
            Measure("drain_written_per_message", "drain, bytes written per message", None),
        ),
        durable_fill,
    ),
    Work(
        "durable-fixed",
        "2,000 durable messages/s fixed, 1 KiB",
        (
            Measure("p50_us", "p50, µs", 300),
            Measure("p99_us", "p99, µs", 900),
            Measure("cpu_us", CPU, None, digits=2),
            SYNCS,
            WRITTEN,
        ),
        durable_fixed,
    ),
    Work(
        "slow-disk",
        "each sync 5 ms slower, durable, 1 KiB",
        (
            Measure("per_second", "1→1 keeping up, messages/s", 20_000, more_is_better=True),
            SYNCS,
            Measure("fill_per_second", "producer alone, messages/s", 20_000, more_is_better=True),
            Measure("fill_syncs_per_1000", "alone, syncs per 1,000 messages", None, digits=2),
        ),
        slow_disk,
    ),
)

JMS: Final = (
    Work(
        "jms-sync",
        "Qpid JMS, one producer, blocking persistent sends, 1 KiB",
        (
            Measure("per_second", "sends/s", 2_000, more_is_better=True),
            Measure("p50_us", "p50, µs", 350),
            Measure("cpu_us", CPU, None, digits=2),
            SYNCS,
            WRITTEN,
        ),
        jms_sync,
    ),
    Work(
        "jms-many",
        f"Qpid JMS, {PRODUCERS} producers, blocking persistent sends, 1 KiB",
        (
            Measure("per_second", "sends/s", 4_500, more_is_better=True),
            Measure("p50_us", "p50, µs", None),
            Measure("cpu_us", CPU, None, digits=2),
            SYNCS,
            WRITTEN,
        ),
        jms_many,
    ),
    Work(
        "jms-transacted",
        f"Qpid JMS, one producer, {PER_COMMIT} persistent messages per commit, 1 KiB",
        (
            Measure("per_second", PER_SECOND, 10_000, more_is_better=True),
            Measure("p50_us", "commit p50, µs", None),
            Measure("cpu_us", CPU, None, digits=2),
            SYNCS,
            WRITTEN,
        ),
        jms_transacted,
    ),
)

TLS: Final = (
    Work(
        "tls-small",
        "TLS 1.3, 1→1, 100 B",
        (
            Measure("per_second", PER_SECOND, None, more_is_better=True, times_artemis=3),
            Measure("cpu_us", CPU, 1.0, digits=2),
        ),
        tls_small,
        listener=AMQPS,
    ),
    Work(
        "tls-large",
        "TLS 1.3, 1→1, 1 KiB",
        (
            Measure("per_second", PER_SECOND, None, more_is_better=True, times_artemis=2),
            Measure("cpu_us", CPU, 2.6, digits=2),
        ),
        tls_large,
        listener=AMQPS,
    ),
    Work(
        "tls-fixed",
        "TLS 1.3, 10,000 messages/s fixed, 100 B",
        (
            Measure("p50_us", "p50, µs", None),
            Measure("p99_us", "p99, µs", None),
            Measure("cpu_us", CPU, None, digits=2),
        ),
        tls_fixed,
        listener=AMQPS,
    ),
)

WEBSOCKET: Final = (
    Work(
        "ws-small",
        "WebSocket, 1→1, 100 B",
        (
            Measure("per_second", PER_SECOND, None, more_is_better=True, times_artemis=1.5),
            Measure("cpu_us", CPU, None, digits=2),
        ),
        ws_small,
        listener=WS,
    ),
)

NOT_DURABLE: Final = (
    Work(
        "small",
        "1→1, 100 B",
        (
            Measure("per_second", PER_SECOND, 500_000, more_is_better=True),
            Measure("cpu_us", CPU, 1.2, digits=2),
        ),
        small,
    ),
    Work(
        "large",
        "1→1, 1 KiB",
        (
            Measure("per_second", PER_SECOND, 350_000, more_is_better=True),
            Measure("cpu_us", CPU, 2.0, digits=2),
        ),
        large,
    ),
    Work(
        "topic",
        "topic 1→10, 100 B",
        (
            Measure("per_second", "messages/s in", 100_000, more_is_better=True),
            Measure("cpu_us", "broker's CPU, µs/message in", 5.0, digits=2),
        ),
        topic,
        topics=True,
    ),
    Work(
        "topics",
        f"{TOPICS} topics 1→{SUBSCRIBERS}, 100 B",
        (
            Measure("per_second", "messages/s in", None, more_is_better=True),
            Measure("cpu_us", "broker's CPU, µs/message in", None, digits=2),
        ),
        topics,
        topics=True,
    ),
    Work(
        "transacted",
        f"1→1, {PER_COMMIT} messages per commit at both ends, 100 B",
        (
            Measure("per_second", PER_SECOND, None, more_is_better=True),
            Measure("cpu_us", CPU, None, digits=2),
        ),
        transacted,
    ),
    Work(
        "competing",
        f"queue, {CONSUMERS} competing consumers, 100 B",
        (
            Measure("per_second", PER_SECOND, None, more_is_better=True),
            Measure("cpu_us", CPU, None, digits=2),
        ),
        competing,
    ),
    Work(
        "shared",
        f"durable shared subscription, {CONSUMERS} consumers, 100 B",
        (
            Measure("per_second", PER_SECOND, None, more_is_better=True),
            Measure("cpu_us", CPU, None, digits=2),
        ),
        shared,
        topics=True,
    ),
    Work(
        "relay",
        "anonymous relay, 1,000 queues in turn without a consumer, 100 B",
        (
            Measure("per_second", PER_SECOND, None, more_is_better=True),
            Measure("cpu_us", CPU, None, digits=2),
        ),
        relay,
    ),
    Work(
        "fixed",
        "10,000 messages/s fixed, 100 B",
        (
            Measure("p50_us", "p50, µs", 110),
            Measure("p99_us", "p99, µs", 400),
            Measure("cpu_us", CPU, None, digits=2),
        ),
        fixed,
    ),
    Work(
        "scheduled",
        "10,000 messages/s, each due a second after its sending, 100 B: lateness",
        (
            Measure("p50_us", "p50, µs", None),
            Measure("p99_us", "p99, µs", 50_000),
            Measure("cpu_us", CPU, None, digits=2),
        ),
        scheduled,
    ),
    Work(
        "fill",
        "fill: producer alone, 100 B; beside a consumer taking 100/s",
        (
            Measure("per_second", "messages/s alone", None, more_is_better=True),
            Measure("beside_per_second", "messages/s beside", None, more_is_better=True),
            Measure("ratio_percent", "the second in % of the first", 80, more_is_better=True),
        ),
        fill,
        median_of="ratio_percent",
    ),
    Work(
        "engine",
        "engine alone, in + out, 100 B",
        (Measure("cpu_us", "CPU, µs/message", 0.6, digits=3),),
        engine,
        alone=True,
    ),
    Work(
        "selectors",
        "100 consumers of a queue, each with its selector",
        (
            Measure("waiting_us", "CPU, µs/message that waited", None, digits=1),
            Measure("arriving_us", "CPU, µs/message that comes", None, digits=1),
            Measure("longest_ms", "longest round, ms", None, digits=1),
        ),
        selectors,
        alone=True,
    ),
    Work(
        "start",
        "start with an empty store, nothing switched on",
        (
            Measure("start_ms", "to the ready line, ms", None),
            Measure("start_cpu_ms", "CPU until then, ms", None),
            Measure("rest_mib", "at rest, MiB", 75, digits=1),
        ),
        start,
        fresh=True,
    ),
    Work(
        "memory",
        "resident memory",
        (
            Measure("rest_mib", "at rest, MiB", 75, digits=1),
            Measure("after_mib", "after the four loads, MiB", 80, digits=1),
        ),
        memory,
        fresh=True,
        topics=True,
    ),
    Work(
        "idle",
        "idle connections, a session each",
        (Measure("kib_each", "KiB per connection", 20, digits=1),),
        idle,
        fresh=True,
    ),
)

ALL: Final = NOT_DURABLE + TLS + WEBSOCKET + STRANGERS + DURABLE + JMS
