"""The metrics of `/metrics` and `/metrics/detailed`: their names, types, labels and meanings.

No label is a user, a client, a client id, a message or a text of an error: labels have closed sets
of values, or are names of listeners. The detailed page has names of nodes, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PREFIX: Final = "jms_broker_"

COUNTER: Final = "counter"
GAUGE: Final = "gauge"
HISTOGRAM: Final = "histogram"


@dataclass(frozen=True)
class Metric:
    """One metric. `name` is without the prefix; `help` is one line of the page."""

    name: str
    type: str
    help: str
    labels: tuple[str, ...] = ()

    def full_name(self) -> str:
        """Return the name that Prometheus shows."""
        return PREFIX + self.name


BROKER: Final = (
    Metric(
        "messages_received_total",
        COUNTER,
        "Messages that producers sent, accepted or not; those of transactions with their commit",
    ),
    Metric("messages_accepted_total", COUNTER, "Messages that queues and topics took"),
    Metric("messages_delivered_total", COUNTER, "Deliveries to consumers and browsers"),
    Metric(
        "messages_settled_total",
        COUNTER,
        "Deliveries that ended: `accepted`; `rejected`; `failed` at the redelivery limit;"
        " `returned` to the queue",
        ("outcome",),
    ),
    Metric(
        "messages_redelivered_total",
        COUNTER,
        "Messages that returned to their queue, to be delivered again",
    ),
    Metric(
        "messages_dead_lettered_total",
        COUNTER,
        "Messages moved to a dead-letter node: `rejected`, or at the `delivery-limit`",
        ("reason",),
    ),
    Metric(
        "messages_dropped_total",
        COUNTER,
        "Messages discarded: without a dead-letter node (`rejected`, `delivery-limit`),"
        " `displaced` from a full queue, or with the `backlog` of a subscription that began anew",
        ("reason",),
    ),
    Metric("messages_expired_total", COUNTER, "Messages that expired, moved or discarded"),
    Metric(
        "messages_unroutable_total",
        COUNTER,
        "Messages refused to their producers, by the condition of AMQP",
        ("reason",),
    ),
    Metric("messages_duplicate_total", COUNTER, "Messages found to be repeats by their ids"),
    Metric(
        "selectors_given_up_total",
        COUNTER,
        "Messages that subscriptions did not get, since their selector took too many steps",
    ),
    Metric(
        "spans_total",
        COUNTER,
        "Spans of traced messages: `exported`; `dropped`, since too many waited; `failed`, since"
        " the collector did not take them",
        ("result",),
    ),
    Metric(
        "message_bytes_total",
        COUNTER,
        "Bytes of the messages that queues and topics took",
        ("direction",),
    ),
    Metric(
        "network_bytes_total",
        COUNTER,
        "Bytes of AMQP, without TLS and WebSocket",
        ("direction", "listener"),
    ),
    Metric("connections_opened_total", COUNTER, "AMQP connections opened", ("listener",)),
    Metric("connections_closed_total", COUNTER, "AMQP connections ended", ("listener",)),
    Metric(
        "connections_refused_total",
        COUNTER,
        "AMQP connections refused after their open, by the condition of AMQP",
        ("condition",),
    ),
    Metric(
        "connections_over_limit_total", COUNTER, "Connections cut for the limits of connections"
    ),
    Metric("connections_stalled_total", COUNTER, "Connections cut as their client did not read"),
    Metric("links_refused_total", COUNTER, "Attaches refused"),
    Metric(
        "logins_total",
        COUNTER,
        "Logins by SASL, and requests over HTTP with a login",
        ("mechanism", "result"),
    ),
    Metric("logins_throttled_total", COUNTER, "Logins refused unchecked after failed ones"),
    Metric(
        "access_denied_total",
        COUNTER,
        "Requests refused for lack of a right, also those of management",
        ("kind", "verb"),
    ),
    Metric("user_limits_reached_total", COUNTER, "Requests refused by the limits of users"),
    Metric("handshakes_failed_total", COUNTER, "TLS handshakes that failed"),
    Metric("commits_total", COUNTER, "Commits of the store"),
    Metric(
        "transactions_total", COUNTER, "Transactions: `committed` or `rolled_back`", ("result",)
    ),
    Metric("reloads_total", COUNTER, "Reloads of the settings: `ok` or `failed`", ("result",)),
    Metric(
        "queue_wait_seconds",
        HISTOGRAM,
        "From the arrival of a message to its first delivery; one delivery in 64 is measured,"
        " to the millisecond",
    ),
    Metric(
        "settle_duration_seconds",
        HISTOGRAM,
        "From the arrival of a durable message to its acceptance by a consumer; each queue measures"
        " one message at a time",
    ),
    Metric("commit_duration_seconds", HISTOGRAM, "Time of a commit of the store on a disk"),
    Metric("commit_messages", HISTOGRAM, "Messages of one commit"),
    Metric(
        "schedule_lateness_seconds",
        HISTOGRAM,
        "From the time of a scheduled message to its release, of the first message due at once",
    ),
    Metric("handshake_duration_seconds", HISTOGRAM, "Time of a successful TLS handshake"),
    Metric("loop_lag_seconds", HISTOGRAM, "Lateness of a timer of the event loop, each 0.25 s"),
    Metric(
        "messages",
        GAUGE,
        "Messages in all queues and subscriptions: `ready`, `unsettled`, `scheduled` (also held"
        " after a failure), `staged`, `leased`",
        ("state",),
    ),
    Metric("queues", GAUGE, "Queues: `named` or `temporary`", ("kind",)),
    Metric("topics", GAUGE, "Topics: `named` or `temporary`", ("kind",)),
    Metric("subscriptions", GAUGE, "Subscriptions: `shared` or `unshared`", ("kind", "durable")),
    Metric("connections", GAUGE, "Open AMQP connections", ("listener",)),
    Metric("sessions", GAUGE, "Sessions of these connections"),
    Metric("links", GAUGE, "Attached links, as clients see them: `sender`, `receiver`", ("role",)),
    Metric("stalled_links", GAUGE, "Links of connections whose client does not read"),
    Metric("quota_held_links", GAUGE, "Senders that wait for the rates of their user"),
    Metric("transactions_open", GAUGE, "Transactions that are neither committed nor rolled back"),
    Metric("leases", GAUGE, "Leases"),
    Metric("suspended_links", GAUGE, "Links that have ended, and whose deliveries may be resumed"),
    Metric(
        "bridge_messages_total",
        COUNTER,
        "Messages that a bridge has taken: `moved` to the other broker; `refused`, which are dead"
        " letters; `looped`, dropped",
        ("bridge", "result"),
    ),
    Metric("bridge_up", GAUGE, "1 while a bridge is connected, and not paused", ("bridge",)),
    Metric("bridge_held", GAUGE, "Messages that a bridge has leased", ("bridge",)),
    Metric(
        "bridge_failures_total",
        COUNTER,
        "Attempts of a bridge that ended with an error",
        ("bridge",),
    ),
    Metric("store_bytes", GAUGE, "Size of the store's files; absent if it is not known"),
    Metric(
        "store_free_bytes", GAUGE, "Bytes that can be written to the store; absent if not known"
    ),
    Metric("store_disk_bytes", GAUGE, "Size of the store's disk; absent if it is not known"),
    Metric("quarantined_messages", GAUGE, "Damaged messages, which are not delivered"),
    Metric("memory_bytes", GAUGE, "Memory held for clients, by use", ("area",)),
    Metric("memory_limit_bytes", GAUGE, "The setting `memory_max`; absent without a limit"),
    Metric(
        "alarm",
        GAUGE,
        "1 while it holds: `disk` (below `disk_free_min`), `disk_full`, `memory`, `store_away`,"
        " `store_standby`",
        ("alarm",),
    ),
    Metric(
        "certificate_expiry_seconds",
        GAUGE,
        "Seconds until the first certificate or revocation list of a listener ends",
        ("listener",),
    ),
    Metric("start_time_seconds", GAUGE, "Start of the broker, in s since 1970"),
    Metric("build_info", GAUGE, "Always 1", ("version", "python", "build")),
)
"""The metrics of `/metrics`, in their order on the page."""

DETAILED: Final = (
    Metric(
        "queue_messages",
        GAUGE,
        "Messages of a queue: `ready`, `unsettled`, `scheduled` (also held after a failure),"
        " `staged`",
        ("queue", "state"),
    ),
    Metric(
        "queue_oldest_seconds",
        GAUGE,
        "Age of the oldest ready message that is in memory; 0 without one",
        ("queue",),
    ),
    Metric("queue_consumers", GAUGE, "Consumers of a queue", ("queue",)),
    Metric(
        "queue_received_total",
        COUNTER,
        "Messages that came into a queue since the start, also moved ones",
        ("queue",),
    ),
    Metric(
        "subscription_messages",
        GAUGE,
        "Messages of the subscriptions of this topic and name, over all clients; the name is empty"
        " for subscriptions without one",
        ("topic", "subscription", "state"),
    ),
    Metric(
        "subscription_consumers",
        GAUGE,
        "Consumers of these subscriptions",
        ("topic", "subscription"),
    ),
)
"""The families of `/metrics/detailed`."""

TRUNCATED: Final = Metric(
    "detailed_truncated",
    GAUGE,
    "Queues, and names of subscriptions, that the limit of the request left out",
    ("kind",),
)
"""The metric that each `/metrics/detailed` ends with."""

EVERY: Final = (*BROKER, *DETAILED, TRUNCATED)
