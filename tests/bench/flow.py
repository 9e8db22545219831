"""Rows in which senders and receivers work at the same time."""

from typing import Final

from tests.bench.effort import Meter
from tests.bench.server import AMQP, AMQPS, WS
from tests.bench.work import Run, Site, problems_of

FIXED_RATE: Final = 10_000
TOPICS: Final = 100
SUBSCRIBERS: Final = 10
SCHEDULED_AHEAD_MS: Final = 1000
PER_COMMIT: Final = 100
CONSUMERS: Final = 10
RELAY_ADDRESSES: Final = 1_000
DURABLE: Final = 2  # unsettled-state


def through(
    site: Site,
    *,
    kind: str,
    count: int,
    size: int,
    links: int,
    rate: int = 0,
    nodes: int = 1,
    delay: int = 0,
    commit: int = 0,
    shared: bool = False,
    durable: bool = False,
    over: str = AMQP,
) -> Run:
    """Send `count` messages to `nodes` nodes, each with a sender and `links` receivers.

    Receivers attach first. A message is due `delay` ms after its sending; latency counts from then.
    Both ends commit every `commit` messages. Each receiver gets all messages; if `shared`, each
    message has one receiver. If `durable`, the disk's work is among the figures. `over` is the kind
    of the listener that they connect to.
    """
    server, client, address = site.server, site.client, site.new_address(kind)
    peer = server.peer_over(over)
    role = "receive" if links * nodes == 1 else "fanout"
    options: dict[str, float | str] = {"size": size, "capability": kind, "spread": nodes}
    options |= {"commit": commit, "tls": int(over == AMQPS), "websocket": int(over == WS)}
    receiving = options | (sharing(kind, address) if shared else {})
    each = count // nodes
    with client.start(
        role, peer, address, count=each, links=links * nodes, **receiving
    ) as receiver:
        receiver.await_attached()
        meter = Meter(server)
        options |= {"rate": rate, "delay": delay, "durable": int(durable)}
        with client.start("send", peer, address, count=each, links=nodes, **options) as sender:
            sent = sender.finish()
        got = receiver.finish()
    effort = meter.effort()
    client_cpu_seconds = sent.cpu_seconds + got.cpu_seconds
    seconds = max(got.last_ns - sent.first_ns, 1) / 1e9
    figures = {
        "per_second": count / seconds,
        "cpu_us": effort.cpu_seconds * 1e6 / count,
        "rss_mib": server.rss_mib(),
        "p50_us": got.p50,
        "p99_us": got.p99,
        "p999_us": got.p999,
        "client_cpu_us": client_cpu_seconds * 1e6 / count,
        "seconds": seconds,
        "others_percent": effort.others_percent(seconds, client_cpu_seconds),
    }
    if durable:
        figures |= effort.on_disk(count)
    expected = count if shared else count * links
    return Run(figures, problems_of(sent, got, expected=expected))


def sharing(kind: str, address: str) -> dict[str, float | str]:
    """Return the options of receivers that share the messages of a queue or of a subscription."""
    if kind == "queue":
        return {"shared": 1}
    subscription = {"capability": "topic,shared,global", "name": f"{address}|global"}
    return {"shared": 1, "durability": DURABLE, **subscription}


def small(site: Site) -> Run:
    return through(site, kind="queue", count=site.scale.messages, size=100, links=1)


def large(site: Site) -> Run:
    return through(site, kind="queue", count=site.scale.large_messages, size=1024, links=1)


def topic(site: Site) -> Run:
    return through(site, kind="topic", count=site.scale.fanned_out, size=100, links=10)


def topics(site: Site) -> Run:
    count = site.scale.to_topics
    return through(site, kind="topic", count=count, size=100, links=SUBSCRIBERS, nodes=TOPICS)


def fixed(site: Site) -> Run:
    count = FIXED_RATE * site.scale.fixed_seconds
    return through(site, kind="queue", count=count, size=100, links=1, rate=FIXED_RATE)


def scheduled(site: Site) -> Run:
    count = FIXED_RATE * site.scale.fixed_seconds
    return through(
        site,
        kind="queue",
        count=count,
        size=100,
        links=1,
        rate=FIXED_RATE,
        delay=SCHEDULED_AHEAD_MS,
    )


def transacted(site: Site) -> Run:
    count = site.scale.transacted
    return through(site, kind="queue", count=count, size=100, links=1, commit=PER_COMMIT)


def competing(site: Site) -> Run:
    count = site.scale.messages
    return through(site, kind="queue", count=count, size=100, links=CONSUMERS, shared=True)


def shared(site: Site) -> Run:
    count = site.scale.messages
    return through(site, kind="topic", count=count, size=100, links=CONSUMERS, shared=True)


def tls_small(site: Site) -> Run:
    count = site.scale.messages
    return through(site, kind="queue", count=count, size=100, links=1, over=AMQPS)


def tls_large(site: Site) -> Run:
    count = site.scale.large_messages
    return through(site, kind="queue", count=count, size=1024, links=1, over=AMQPS)


def tls_fixed(site: Site) -> Run:
    count = FIXED_RATE * site.scale.fixed_seconds
    return through(site, kind="queue", count=count, size=100, links=1, rate=FIXED_RATE, over=AMQPS)


def ws_small(site: Site) -> Run:
    count = site.scale.messages
    return through(site, kind="queue", count=count, size=100, links=1, over=WS)


def relay(site: Site) -> Run:
    """Send through the anonymous relay to many queues in turn, without a receiver."""
    server, count = site.server, site.scale.relayed
    address = site.new_address("queue")
    meter = Meter(server)
    options = {"size": 100, "relay": RELAY_ADDRESSES}
    with site.client.start("send", server.peer, address, count=count, **options) as sender:
        sent = sender.finish()
    effort = meter.effort()
    figures = {
        "per_second": sent.per_second,
        "cpu_us": effort.cpu_seconds * 1e6 / count,
        "rss_mib": server.rss_mib(),
        "client_cpu_us": sent.cpu_seconds * 1e6 / count,
        "seconds": sent.seconds,
        "others_percent": effort.others_percent(max(sent.seconds, 1e-9), sent.cpu_seconds),
    }
    complaints = [sent.complaint] if sent.complaint else []
    if sent.count != count or sent.not_accepted:
        complaints.append(f"{sent.count} of {count} settled, {sent.not_accepted} not accepted")
    return Run(figures, complaints)
