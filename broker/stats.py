"""Counters of the broker's own work. Exporters read them; nothing here exports."""

from typing import final

from mypy_extensions import i64


@final
class Stats:
    """Totals since the start, one instance per broker. Every attribute only grows."""

    def __init__(self) -> None:
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
