"""Counters of the broker's own work. Exporters read them; nothing here exports."""

from typing import Final, final

from mypy_extensions import i64

OTHER: Final = "other"
"""Stands in a breakdown for every value that is not in its closed set."""

CONDITIONS: Final = (
    "amqp:internal-error",
    "amqp:not-found",
    "amqp:unauthorized-access",
    "amqp:decode-error",
    "amqp:resource-limit-exceeded",
    "amqp:not-allowed",
    "amqp:invalid-field",
    "amqp:not-implemented",
    "amqp:resource-locked",
    "amqp:precondition-failed",
    "amqp:resource-deleted",
    "amqp:illegal-state",
    "amqp:connection:forced",
    "amqp:link:message-size-exceeded",
    "amqp:transaction:unknown-id",
)
"""The conditions of refused connections and messages that are counted apart."""

CAUSES: Final = ("rejected", "delivery-limit")
"""The reasons of moves to a dead-letter node (`routing/entries/dead_letter.py`)."""

MECHANISMS: Final = (
    *("ANONYMOUS", "EXTERNAL", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
    *("OAUTHBEARER", "XOAUTH2", "Basic", "Bearer", "Form"),
)
"""The mechanisms of SASL that the broker offers, the schemes of HTTP, and the console's form."""

LOGIN_OK: Final = "ok"
LOGIN_FAILED: Final = "failed"
LOGIN_UNDECIDED: Final = "undecided"
LOGIN_RESULTS: Final = (LOGIN_OK, LOGIN_FAILED, LOGIN_UNDECIDED)

RELOADED: Final = "ok"
RELOAD_FAILED: Final = "failed"
RELOAD_RESULTS: Final = (RELOADED, RELOAD_FAILED)

BUCKETS: Final[i64] = 16
"""Buckets of a histogram with a bound. One more has the values above the highest."""

SHORTEST_US: Final[i64] = 250
"""The lowest bound of a histogram of times, in µs; the highest is 8.192 s."""


@final
class Breakdown:
    """Counts by one label or more, each with a closed set of values, so that peers add none."""

    def __init__(self, *values: tuple[str, ...]) -> None:
        self.values: Final = values
        self.counts: Final[dict[tuple[str, ...], int]] = {}

    def add(self, *labels: str) -> None:
        """Count one; a label that is not in its set counts as OTHER."""
        key: tuple[str, ...] = ()
        for at, label in enumerate(labels):
            key = (*key, label if label in self.values[at] else OTHER)
        self.counts[key] = self.counts.get(key, 0) + 1


@final
class Histogram:
    """Counts of values in BUCKETS buckets: those up to `least`, up to twice `least`, and so on.

    `counts` has one more bucket, for all higher values. `total` is the sum of all values.
    """

    def __init__(self, least: i64) -> None:
        self.least: Final[i64] = least
        self.counts: Final[list[int]] = [0] * 17
        self.total: i64 = 0

    def observe(self, value: i64) -> None:
        """Count a value; a negative one, after a step of the clock, counts as 0."""
        value = max(value, 0)
        self.total += value
        bound = self.least
        at: i64 = 0
        while at < BUCKETS and value > bound:
            bound <<= 1
            at += 1
        self.counts[at] += 1


@final
class ListenerStats:
    """Totals of the AMQP connections of one listener.

    Bytes are those of AMQP, without TLS and WebSocket. `certificate_end_s` is when its first
    certificate or revocation list ends, in s since 1970; 0 without TLS.
    """

    def __init__(self) -> None:
        self.opened: i64 = 0
        self.closed: i64 = 0
        self.received_bytes: i64 = 0
        self.sent_bytes: i64 = 0
        self.certificate_end_s: float = 0.0


@final
class Breakdowns:
    """Counts that are divided by reason, condition, mechanism or result.

    Kinds and verbs of `access_denied` are the broker's own names, never a client's.
    """

    def __init__(self) -> None:
        self.unroutable: Final = Breakdown(CONDITIONS)
        self.connections_refused: Final = Breakdown(CONDITIONS)
        self.dead_lettered: Final = Breakdown(CAUSES)
        self.dropped: Final = Breakdown(CAUSES)
        self.logins: Final = Breakdown(MECHANISMS, LOGIN_RESULTS)
        self.reloads: Final = Breakdown(RELOAD_RESULTS)
        self.access_denied: Final[dict[tuple[str, str], int]] = {}


@final
class Measurements:
    """Times in µs, and numbers of messages, that are measured where it costs nothing per message.

    Queue waits are measured for one delivery in 64, settlements for the message that each queue
    times (`ack_latency.py`), the lateness of a schedule for the first message due at a time.
    """

    def __init__(self) -> None:
        self.queue_wait_us: Final = Histogram(SHORTEST_US)
        self.settle_us: Final = Histogram(SHORTEST_US)
        self.schedule_lateness_us: Final = Histogram(SHORTEST_US)
        self.commit_us: Final = Histogram(SHORTEST_US)
        self.commit_messages: Final = Histogram(1)
        self.handshake_us: Final = Histogram(SHORTEST_US)


@final
class SpanTotals:
    """Spans of traced messages: those the collector has, those dropped, and those it refused."""

    def __init__(self) -> None:
        self.exported: i64 = 0
        self.dropped: i64 = 0
        self.failed: i64 = 0


@final
class Stats:
    """Totals since the start, one instance per broker. Every counter only grows.

    `listeners` are those of AMQP by name, and `http` if it has TLS.
    """

    selectors_given_up: i64 = 0

    def __init__(self) -> None:
        self.listeners: Final[dict[str, ListenerStats]] = {}
        self.by: Final = Breakdowns()
        self.measured: Final = Measurements()
        self.spans: Final = SpanTotals()
        self.connections_opened: i64 = 0
        self.connections_closed: i64 = 0
        self.connections_refused: i64 = 0
        self.connections_over_limit: i64 = 0
        self.authentication_failures: i64 = 0
        self.tls_handshakes_failed: i64 = 0
        self.websocket_failures: i64 = 0
        self.proxy_headers_refused: i64 = 0
        self.logins_throttled: i64 = 0
        self.access_denied: i64 = 0
        self.access_undecided: i64 = 0
        self.user_limits_reached: i64 = 0
        self.links_revoked: i64 = 0
        self.connections_revoked: i64 = 0
        self.logins_expired: i64 = 0
        self.logins_renewed: i64 = 0
        self.links_attached: i64 = 0
        self.links_refused: i64 = 0
        self.links_stolen: i64 = 0
        self.published: i64 = 0
        self.published_bytes: i64 = 0
        self.unroutable: i64 = 0
        self.delivered: i64 = 0
        self.acknowledged: i64 = 0
        self.requeued: i64 = 0
        self.expired: i64 = 0
        self.dead_lettered: i64 = 0
        self.dropped: i64 = 0
        self.committed: i64 = 0
        self.rolled_back: i64 = 0
        self.backlog_dropped: i64 = 0
        self.displaced: i64 = 0
        self.quarantined: i64 = 0
        self.duplicates: i64 = 0
        self.disk_shortages: i64 = 0
        self.memory_shortages: i64 = 0
        self.spilled: i64 = 0
        self.transactions_given_up: i64 = 0
        self.connections_closed_for_memory: i64 = 0
        self.connections_stalled: i64 = 0
        self.http_connections_dropped: i64 = 0
        self.held_back: i64 = 0
        self.moved_over_limit: i64 = 0
        self.auto_deleted: i64 = 0
        self.disk_full: i64 = 0

    def listener(self, name: str) -> ListenerStats:
        """Return the totals of a listener, made if they are missing."""
        found = self.listeners.get(name)
        if found is None:
            found = self.listeners[name] = ListenerStats()
        return found

    def denied(self, kind: str, verb: str) -> None:
        """Count that a client lacked the right `verb` on a resource of `kind`."""
        self.access_denied += 1
        counts = self.by.access_denied
        counts[kind, verb] = counts.get((kind, verb), 0) + 1

    def as_dict(self) -> dict[str, int]:
        """Return every counter by its name, in the order of declaration."""
        return {
            "connections_opened": self.connections_opened,
            "connections_closed": self.connections_closed,
            "connections_refused": self.connections_refused,
            "connections_over_limit": self.connections_over_limit,
            "authentication_failures": self.authentication_failures,
            "tls_handshakes_failed": self.tls_handshakes_failed,
            "websocket_failures": self.websocket_failures,
            "proxy_headers_refused": self.proxy_headers_refused,
            "logins_throttled": self.logins_throttled,
            "access_denied": self.access_denied,
            "access_undecided": self.access_undecided,
            "user_limits_reached": self.user_limits_reached,
            "links_revoked": self.links_revoked,
            "connections_revoked": self.connections_revoked,
            "logins_expired": self.logins_expired,
            "logins_renewed": self.logins_renewed,
            "links_attached": self.links_attached,
            "links_refused": self.links_refused,
            "links_stolen": self.links_stolen,
            "published": self.published,
            "published_bytes": self.published_bytes,
            "unroutable": self.unroutable,
            "delivered": self.delivered,
            "acknowledged": self.acknowledged,
            "requeued": self.requeued,
            "expired": self.expired,
            "dead_lettered": self.dead_lettered,
            "dropped": self.dropped,
            "committed": self.committed,
            "rolled_back": self.rolled_back,
            "backlog_dropped": self.backlog_dropped,
            "displaced": self.displaced,
            "quarantined": self.quarantined,
            "duplicates": self.duplicates,
            "selectors_given_up": self.selectors_given_up,
            "disk_shortages": self.disk_shortages,
            "memory_shortages": self.memory_shortages,
            "spilled": self.spilled,
            "transactions_given_up": self.transactions_given_up,
            "connections_closed_for_memory": self.connections_closed_for_memory,
            "connections_stalled": self.connections_stalled,
            "http_connections_dropped": self.http_connections_dropped,
            "held_back": self.held_back,
            "moved_over_limit": self.moved_over_limit,
            "auto_deleted": self.auto_deleted,
            "disk_full": self.disk_full,
        }
