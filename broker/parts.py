"""The parts that a broker is composed of, each made from the settings.

Libraries that only some brokers need (SQL, HTTP, structlog) are imported only for those.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from broker import __version__
from broker.amqp.limits import FRAME_BEFORE_OPEN, FRAME_OF_TOKEN_LOGIN, Limits
from broker.audit.audit import Audit
from broker.clock import Clock
from broker.journal import Journal
from broker.links.container import Container
from broker.links.watcher import Watcher
from broker.log_events import AUDIT_NOTICE
from broker.machine import default_memory_max
from broker.net.listener import Listeners
from broker.net.login import Login
from broker.net.offers import check_offers
from broker.policies import policies_of
from broker.routing.batches.staging_area import StagingArea
from broker.routing.credit.disk_guard import Space
from broker.routing.entries.participants import QueueObserver
from broker.routing.errors import InvalidSelector, RoutingError
from broker.routing.queues.message_events import EventLogLimits
from broker.routing.router import Router
from broker.routing.selector import parse_selector
from broker.security.access import AccessRules
from broker.security.account_table import AccountTable
from broker.security.authenticate import admits_anonymous, exposed_listener, open_users
from broker.settings import MEMORY, POSTGRESQL, SQLITE, Settings, SettingsError
from broker.stats import Stats
from broker.tenure import Tenure
from storage.api import LeadershipError, Store
from storage.memory import MemoryStore
from storage.steady_clock import steady_us

if TYPE_CHECKING:
    from broker.bridge.bridges import Bridges
    from broker.http.server import HttpServer
    from broker.leading import Leading
    from broker.links.shard_hosts import ShardHosts
    from broker.management.management import Management
    from broker.net.token_logins import TokenLogins
    from broker.security.package_authenticator import NamedAuthenticator
    from broker.tracing.message_tracer import MessageTracer
    from broker.tracing.span_exporter import SpanExporter

Notice: TypeAlias = Callable[[str], None]

WRITTEN_TIMES: Final = 3
"""Bytes on the disk for each byte of a message, at most: a message is written to a log first and
stays there for a while, and pages of a database file are never full."""


def store_of(settings: Settings) -> Store:
    """Return the store that the settings name, not open. Raise SettingsError without its extra."""
    text = settings.store
    if text == MEMORY:
        return MemoryStore()
    if text.startswith(POSTGRESQL):
        try:
            from storage.sql.postgresql.leadership import Group
            from storage.sql.postgresql.store import PostgresStore
        except ModuleNotFoundError as error:
            raise SettingsError(
                f"the store is in PostgreSQL, and {error.name} is not installed:"
                " pip install 'jms-broker[postgresql]'"
            ) from None
        ha = settings.ha
        if not ha.enabled:
            return PostgresStore(text, grace_ms=settings.store_loss_grace_ms)
        group = Group(
            ha.name,
            silence_ms=ha.silence_ms,
            warm_bytes=ha.warm_bytes,
            prefers=ha.prefer,
            addresses=ha.addresses(),
        )
        return PostgresStore(text, grace_ms=ha.client_grace_ms, group=group)
    from storage.sql.sqlite.store import SqliteStore

    return SqliteStore(Path(text.removeprefix(SQLITE)), ballast_bytes=settings.disk_ballast)


def router_of(
    settings: Settings,
    store: Store,
    journal: Journal,
    *,
    clock: Clock,
    stats: Stats,
    observer: QueueObserver | None,
) -> Router:
    """Return a router without nodes."""
    return Router(
        clock=clock,
        stats=stats,
        policies=policies_of(settings),
        pacing_mark=settings.pacing_backlog,
        grace_ms=settings.connection_loss_grace_ms,
        event_log_limits=EventLogLimits(
            max_events=settings.event_log_max_events,
            max_age_ms=settings.event_log_max_age_ms,
        ),
        stage_retention_ms=settings.stage_retention_s * 1000,
        memory_max=settings.memory_max or default_memory_max(),
        observer=observer,
        commit_delay=journal.commit_delay,
        commits_take_time=not store.commits_at_once,
        # paging messages out to a store in memory would free nothing
        paging_window=-1 if store.commits_at_once else settings.paging_window,
    )


def declare(router: Router, journal: Journal) -> None:
    """Create the queues and topics of the settings. Raise SettingsError if one cannot be."""
    try:
        router.declare(journal.batch)
    except RoutingError as refusal:
        raise SettingsError(f"a declared queue or topic: {refusal}") from None


def no_notice(text: str) -> None:
    """Say nothing: for a login that only checks the settings."""


def authenticator_of(settings: Settings) -> NamedAuthenticator | None:
    """Return the authenticator of a package, None without one. SettingsError if it is missing."""
    if settings.authenticator is None:
        return None
    # others are spared the module
    from broker.net.package_logins import load_authenticator

    return load_authenticator(settings.authenticator)


def login_of(
    settings: Settings,
    notice: Notice = no_notice,
    table: AccountTable | None = None,
    *,
    package: NamedAuthenticator | None = None,
) -> Login:
    """Return the check of logins. Raise SettingsError if the broker must not run so.

    `notice` is called with what the operator should know of it later. Users are those of the
    settings, of `table` and of `package`: before the table is loaded, nobody may enter without a
    login, and `settle_login` is to be called later.
    """
    login = Login(
        open_users(settings, table),
        anonymous=False,
        plain_always=settings.plain == "always",
        listed={
            each.name: frozenset(each.mechanisms)
            for each in settings.listeners()
            if each.mechanisms is not None
        },
        tokens=tokens_of(settings, notice),
        package=package,
    )
    if table is None or table.is_loaded:
        settle_login(settings, login)
    return login


def settle_login(settings: Settings, login: Login) -> None:
    """Decide who may enter without a login, now that all users are known.

    Raise SettingsError if the broker must not run so.
    """
    anonymous = admits_anonymous(settings, login.users)
    is_local = exposed_listener(settings) is None
    login.settle(anonymous=anonymous, all_administer=anonymous and is_local)
    check_offers(settings, login)


def tokens_of(settings: Settings, notice: Notice) -> TokenLogins | None:
    """Return the check of tokens, None without [oauth]. SettingsError if it cannot be made."""
    if settings.oauth is None:
        return None
    try:
        from broker.net.token_logins import TokenLogins
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        raise SettingsError(
            f"[oauth] is set, and {missing} is not installed: pip install 'jms-broker[oauth]'"
        ) from None
    return TokenLogins(settings.oauth, notice=notice)


def access_of(settings: Settings) -> AccessRules:
    """Return the rules on who may do what. Raise SettingsError if their file is wrong."""
    if settings.acl_file is None:
        return AccessRules()
    from broker.security.rules_file import RulesFileError, read_rules

    try:
        return read_rules(settings.acl_file)
    except RulesFileError as error:
        raise SettingsError(f"acl_file: {error}") from None


def http_of(
    settings: Settings,
    container: Container,
    store: Store,
    *,
    management: Management,
    obstacles: Callable[[], list[str]],
    has_started: Callable[[], bool],
) -> HttpServer | None:
    """Return the HTTP server, None if no port is set.

    `obstacles` returns why the broker does not serve clients now, `has_started` whether its start
    is complete. Raise SettingsError without its extra, or if its certificates cannot be used.
    """
    if settings.http.port is None:
        return None
    tls = settings.tls if settings.http.tls else None
    try:
        from broker.http.server import HttpServer

        return HttpServer(
            settings.http,
            container,
            store,
            management=management,
            tls=tls,
            obstacles=obstacles,
            has_started=has_started,
        )
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"http.port is set, and {error.name} is not installed: pip install 'jms-broker[http]'"
        ) from None


def leading_of(
    settings: Settings,
    container: Container,
    listeners: Listeners,
    *,
    store: Store,
    lost: Callable[[LeadershipError], None],
) -> Leading:
    """Return the watch over the tenure of this broker, which leads its group."""
    # a broker without a group is spared the module
    from broker.leading import Leading

    tenure = Tenure(store.proof_us, steady_us, silence_us=settings.ha.silence_ms * 1000)
    store.when_unproved(tenure.void)
    return Leading(
        tenure,
        container,
        listeners,
        grace_ms=settings.ha.client_grace_ms,
        members=store.members,
        lost=lost,
    )


def check_bridges(settings: Settings) -> None:
    """Raise SettingsError if the selector of a bridge is wrong."""
    for each in settings.bridge:
        try:
            if each.selector.strip():
                parse_selector(each.selector)
        except InvalidSelector as error:
            raise SettingsError(f"bridge {each.name!r}: selector: {error}") from None


def bridges_of(settings: Settings, container: Container) -> Bridges | None:
    """Run the bridges of the settings, and return them; None if there are none."""
    if not settings.bridge:
        return None
    # a broker without bridges is spared the modules
    from broker.bridge.bridges import Bridges

    bridges = Bridges(settings.bridge, container)
    bridges.start()
    return bridges


def shard_hosts_of(settings: Settings) -> ShardHosts | None:
    """Return the hosts of other shards, to which clients are sent; None if there are none."""
    hosts = settings.other_shards()
    if not hosts:
        return None
    # a broker without shards is spared the module
    from broker.links.shard_hosts import ShardHosts

    return ShardHosts(hosts)


def log_watcher() -> Watcher:
    """Return a watcher that writes the log of the process."""
    # an embedded broker has a watcher of its own, and is spared structlog
    from broker.net.log import Log

    return Log()


def audit_of(settings: Settings, folder: Path, *, clock: Clock, watcher: Watcher) -> Audit:
    """Return the audit that writes to `folder`; `watcher` logs what goes wrong with it."""
    # a broker without an audit is spared its modules
    from broker.audit.audit_log import AuditLog
    from broker.audit.writer import AuditLimits, AuditWriter

    chosen = settings.audit
    limits = AuditLimits(chosen.file_bytes, chosen.total_bytes, chosen.retention_days)
    writer = AuditWriter(folder, limits, wall_ms=lambda: int(clock.wall_ms()))
    return AuditLog(
        writer,
        wall_ms=lambda: int(clock.wall_ms()),
        tell=lambda text: watcher.noticed(AUDIT_NOTICE.notice(text)),
    )


def audit_messages(settings: Settings, container: Container) -> None:
    """Record the messages of the queues that the settings list. SettingsError if they cannot be."""
    if not settings.audit.messages:
        return
    # others are spared the module
    from broker.management.message_audit import AuditedQueues
    from broker.security.patterns import PatternError

    try:
        chosen = AuditedQueues(settings.audit.messages, container)
    except PatternError as error:
        raise SettingsError(f"audit.messages: {error}") from None
    container.router.context.observer_choice = chosen


def exporter_of(
    settings: Settings, stats: Stats, tell: Callable[[str], None]
) -> SpanExporter | None:
    """Return what sends spans to the collector of the settings, None if there is none.

    `tell` is called with a text for the log. Raise SettingsError without the extra.
    """
    chosen = settings.tracing
    if chosen.endpoint is None:
        return None
    try:
        from broker.tracing.otlp import OtlpSink
        from broker.tracing.span_exporter import SpanExporter
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        raise SettingsError(
            f"tracing.endpoint is set, and {missing} is not installed: pip install"
            " 'jms-broker[otel]'"
        ) from None
    sink = OtlpSink(str(chosen.endpoint), chosen.service_name, __version__)
    return SpanExporter(sink, stats.spans, tell)


def tracer_of(
    exporter: SpanExporter, journal: Journal, *, clock: Clock, observer: QueueObserver | None
) -> MessageTracer:
    """Return the observer of queues that makes spans, and passes all events on to `observer`."""
    # a broker without traces is spared the module
    from broker.tracing.message_tracer import MessageTracer

    return MessageTracer(clock, journal, exporter, others=observer)


def audit_watcher(watcher: Watcher, audit: Audit) -> Watcher:
    """Return a watcher that records in `audit` what it passes on to `watcher`."""
    from broker.net.audit_watcher import AuditWatcher

    return AuditWatcher(watcher, audit)


def limits_of(settings: Settings) -> Limits:
    """Return the limits of one connection."""
    return Limits(
        max_frame_size=settings.max_frame_size,
        channel_max=settings.channel_max,
        handle_max=settings.handle_max,
        incoming_window=settings.incoming_window,
        max_message_size=settings.max_message_size,
        partial_bytes_max=settings.partial_bytes_max,
        handshake_timeout_ms=settings.handshake_timeout_ms,
        idle_time_out_ms=settings.idle_time_out_ms,
        transactions_max=settings.transactions_max,
        transaction_operations_max=settings.transaction_operations_max,
        transaction_bytes_max=settings.transaction_bytes_max,
        transaction_timeout_ms=settings.transaction_timeout_ms,
        resume_max_s=settings.resume_max_s,
        login_frame_max=FRAME_BEFORE_OPEN if settings.oauth is None else FRAME_OF_TOKEN_LOGIN,
    )


class StoreSpace(Space):
    """The free space of a store's disk, less the bytes that are still to be written to it."""

    def __init__(self, store: Store, journal: Journal, stages: StagingArea) -> None:
        self._store: Final = store
        self._journal: Final = journal
        self._stages: Final = stages

    def is_away(self) -> bool:
        """Return whether the store cannot be reached."""
        return self._store.is_away()

    def is_full(self) -> bool:
        """Return whether a commit has used the room of the ballast."""
        return self._store.is_full()

    def free_bytes(self) -> int:
        """Return the free bytes, negative if they are not known."""
        free = self._store.free_bytes()
        if free < 0:
            return free
        to_be_written = int(self._journal.unwritten_bytes() + self._stages.bytes)
        return max(0, free - WRITTEN_TIMES * to_be_written)
