"""The values of the metrics of `/metrics`."""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from broker import __version__
from broker.compiled import build_kind
from broker.http.broker_totals import BrokerTotals
from broker.http.metric_text import Labels, Value
from broker.management.alarms import alarms_of
from broker.routing.credit.memory import UNBOUNDED
from broker.security.entrance import HTTP
from broker.stats import Breakdown, Histogram, Stats

if TYPE_CHECKING:
    from broker.http.loop_lag import LoopLag
    from broker.links.container import Container
    from storage.api import Store

MICROSECONDS: Final = 1_000_000

Samples = Mapping[Labels, Value]
"""Values by those of the labels."""

Values = dict[str, Samples]
"""The samples by the name of their metric."""


def counters(stats: Stats) -> Values:
    """Return the counters of messages, connections, rights and commits."""
    accepted, refused = stats.published, stats.unroutable
    return {
        "messages_received_total": {(): accepted + refused},
        "messages_accepted_total": {(): accepted},
        "messages_delivered_total": {(): stats.delivered},
        "messages_settled_total": _settled(stats),
        "messages_redelivered_total": {(): stats.requeued},
        "messages_dead_lettered_total": _counted(stats.by.dead_lettered),
        "messages_dropped_total": {
            **_counted(stats.by.dropped),
            ("displaced",): stats.displaced,
            ("backlog",): stats.backlog_dropped,
        },
        "messages_expired_total": {(): stats.expired},
        "messages_unroutable_total": _counted(stats.by.unroutable),
        "messages_duplicate_total": {(): stats.duplicates},
        "selectors_given_up_total": {(): stats.selectors_given_up},
        "spans_total": {
            ("exported",): stats.spans.exported,
            ("dropped",): stats.spans.dropped,
            ("failed",): stats.spans.failed,
        },
        "message_bytes_total": {("in",): stats.published_bytes},
        "connections_refused_total": _counted(stats.by.connections_refused),
        "connections_over_limit_total": {(): stats.connections_over_limit},
        "connections_stalled_total": {(): stats.connections_stalled},
        "links_refused_total": {(): stats.links_refused},
        "logins_total": _counted(stats.by.logins),
        "logins_throttled_total": {(): stats.logins_throttled},
        "access_denied_total": {
            (kind, verb): count for (kind, verb), count in stats.by.access_denied.items()
        },
        "user_limits_reached_total": {(): stats.user_limits_reached},
        "handshakes_failed_total": {(): stats.tls_handshakes_failed},
        "commits_total": {(): sum(stats.measured.commit_messages.counts)},
        "transactions_total": {
            ("committed",): stats.committed,
            ("rolled_back",): stats.rolled_back,
        },
        "reloads_total": _counted(stats.by.reloads),
        "quarantined_messages": {(): stats.quarantined},
    }


def _settled(stats: Stats) -> Samples:
    """Return the ends of deliveries; a failed or rejected message has been moved or dropped."""
    ends: dict[Labels, Value] = {
        ("accepted",): stats.acknowledged,
        ("returned",): stats.requeued,
    }
    causes = {("rejected",): ("rejected",), ("failed",): ("delivery-limit",)}
    for outcome, cause in causes.items():
        moved = stats.by.dead_lettered.counts.get(cause, 0)
        ends[outcome] = moved + stats.by.dropped.counts.get(cause, 0)
    return ends


def _counted(breakdown: Breakdown) -> Samples:
    """Return the counts of a breakdown; those by one label begin with 0 for each value."""
    counts: dict[Labels, Value] = {}
    if len(breakdown.values) == 1:
        counts.update(((value,), 0) for value in breakdown.values[0])
    counts.update(breakdown.counts)
    return counts


def listeners(stats: Stats, now_s: float) -> Values:
    """Return the metrics of each listener; HTTP has the end of its certificate alone."""
    amqp = {name: each for name, each in stats.listeners.items() if name != HTTP}
    network: dict[Labels, Value] = {}
    for name, each in amqp.items():
        network["in", name] = each.received_bytes
        network["out", name] = each.sent_bytes
    return {
        "network_bytes_total": network,
        "connections_opened_total": {(name,): each.opened for name, each in amqp.items()},
        "connections_closed_total": {(name,): each.closed for name, each in amqp.items()},
        "certificate_expiry_seconds": {
            (name,): each.certificate_end_s - now_s
            for name, each in stats.listeners.items()
            if each.certificate_end_s
        },
    }


def gauges(totals: BrokerTotals, container: Container) -> Values:
    """Return the numbers of messages, nodes, connections and links."""
    messages, subscriptions, router = totals.messages, totals.subscriptions, container.router
    connections = dict.fromkeys((name for name in container.stats.listeners if name != HTTP), 0)
    connections.update(totals.connections)
    return {
        "messages": {
            ("ready",): messages.ready,
            # leased messages are unsettled, too, until a lease of them ends between two stretches
            ("unsettled",): max(0, messages.unsettled - totals.leased),
            ("scheduled",): messages.held,
            ("staged",): router.staging_area.messages(),
            ("leased",): totals.leased,
        },
        "queues": {
            ("named",): totals.queues - totals.temporary_queues,
            ("temporary",): totals.temporary_queues,
        },
        "topics": {
            ("named",): totals.topics - totals.temporary_topics,
            ("temporary",): totals.temporary_topics,
        },
        "subscriptions": {
            ("shared", "true"): subscriptions.shared_durable,
            ("shared", "false"): subscriptions.shared_volatile,
            ("unshared", "true"): subscriptions.unshared_durable,
            ("unshared", "false"): subscriptions.unshared_volatile,
        },
        "connections": {(name,): count for name, count in connections.items()},
        "sessions": {(): totals.sessions},
        "links": {("sender",): totals.senders, ("receiver",): totals.receivers},
        "stalled_links": {(): totals.stalled_links},
        "quota_held_links": {(): totals.held_links()},
        "transactions_open": {(): totals.transactions},
        "leases": {(): len(router.leases.named)},
        "suspended_links": {(): router.termini.count()},
        **_bridges(container),
    }


def _bridges(container: Container) -> Values:
    """Return the metrics of bridges, whose names are those of the settings."""
    bridges = container.bridges
    messages: dict[Labels, Value] = {}
    for name, status in bridges.items():
        messages[name, "moved"] = status.moved
        messages[name, "refused"] = status.refused
        messages[name, "looped"] = status.looped
    return {
        "bridge_messages_total": messages,
        "bridge_up": {(name,): int(each.is_up()) for name, each in bridges.items()},
        "bridge_held": {(name,): each.held for name, each in bridges.items()},
        "bridge_failures_total": {(name,): each.failures for name, each in bridges.items()},
    }


def machine(container: Container, store: Store, started_s: float) -> Values:
    """Return the metrics of store and memory, the alarms, and the build."""
    memory = container.router.memory
    disk = store.disk_space()
    areas = {
        "nondurable": memory.volatile,
        "durable": memory.durable,
        "transactions": memory.transactions,
        "unfinished": memory.unfinished,
        "output": memory.output,
        "staged": memory.staged,
        "leased": memory.leased,
        "termini": memory.termini,
    }
    build = (__version__, platform.python_version(), build_kind())
    return {
        "store_bytes": {} if disk is None else {(): disk.used},
        "store_free_bytes": {} if disk is None else {(): disk.free},
        "store_disk_bytes": {} if disk is None else {(): disk.total},
        "memory_bytes": {(area,): size for area, size in areas.items()},
        "memory_limit_bytes": {} if memory.limit == UNBOUNDED else {(): memory.limit},
        "alarm": {(name,): int(holds) for name, holds in alarms_of(container, store).items()},
        "start_time_seconds": {(): started_s},
        "build_info": {build: 1},
    }


def histograms(stats: Stats, lag: LoopLag) -> dict[str, tuple[Histogram, int]]:
    """Return each histogram by its name, and how many units of its values are 1 on the page."""
    return {
        "queue_wait_seconds": (stats.measured.queue_wait_us, MICROSECONDS),
        "settle_duration_seconds": (stats.measured.settle_us, MICROSECONDS),
        "commit_duration_seconds": (stats.measured.commit_us, MICROSECONDS),
        "commit_messages": (stats.measured.commit_messages, 1),
        "schedule_lateness_seconds": (stats.measured.schedule_lateness_us, MICROSECONDS),
        "handshake_duration_seconds": (stats.measured.handshake_us, MICROSECONDS),
        "loop_lag_seconds": (lag.lag_us, MICROSECONDS),
    }


def wall_s() -> float:
    """Return the time in s since 1970."""
    return time.time()
