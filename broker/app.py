"""The broker composed of its parts, with the order in which they start and stop."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Final

from broker import __version__
from broker.amqp.errors import CONNECTION_FORCED, ConnectionFault
from broker.audit.record import FAILED, AuditEvent, sprayed
from broker.clock import Clock, SystemClock
from broker.compiled import BUILD, build_kind
from broker.journal import Journal
from broker.large_body_store import LargeBodyStore
from broker.links.authenticator import Authenticator
from broker.links.broker_group import BrokerGroup
from broker.links.container import Container
from broker.links.service import Service
from broker.links.watcher import Watcher
from broker.log_events import (
    AUDIT_MISSING,
    DAMAGED_MESSAGES,
    KEYS_NOT_READ,
    SPANS_LOST,
    SPRAYED,
    STORE_NOTICE,
    USER_DAMAGED,
)
from broker.management.configuration import ConfigurationSource
from broker.management.later import SpawnedTasks
from broker.management.management import Management
from broker.management.user_changes import UserChanges
from broker.management.users import LoginRules
from broker.net.connection_admission import connection_limits
from broker.net.listener import Listeners, PreparedListener
from broker.net.login import Login
from broker.net.users_watch import UsersWatch
from broker.parts import (
    StoreSpace,
    access_of,
    audit_messages,
    audit_of,
    audit_watcher,
    authenticator_of,
    bridges_of,
    check_bridges,
    declare,
    exporter_of,
    http_of,
    leading_of,
    limits_of,
    log_watcher,
    login_of,
    router_of,
    settle_login,
    shard_hosts_of,
    store_of,
    tracer_of,
)
from broker.restore import restore
from broker.routing.credit.disk_guard import DiskGuard
from broker.routing.entries.participants import QueueObserver
from broker.routing.router import Router
from broker.settings import ADOPT, POSTGRESQL, Settings, SettingsError
from broker.stats import Stats
from broker.stored_accounts import StoredAccounts
from broker.stored_tokens import StoredTokens
from broker.windows import Windows
from storage.api import StoreError

if TYPE_CHECKING:
    from broker.bridge.bridges import Bridges
    from broker.http.server import HttpServer
    from broker.leading import Leading
    from broker.tracing.message_tracer import MessageTracer

PRODUCT: Final = "jms-broker"

STOP_TIMEOUT_S: Final = 8.0
"""Seconds that a stop waits for peers to answer the broker's close: service managers kill after
ten seconds."""

STORE_TIMEOUT_MIN_S: Final = 1.0
"""Seconds that a stop then waits for the store, at least."""


class App:
    """One broker: store, router, container and listener, with their order of start and stop.

    An application that embeds a broker may give a clock, a watcher, an observer of queues, and an
    authenticator of its own; `login` is None then.
    """

    leading: Leading | None = None
    """The watch over its tenure, of the leader of a group."""

    bridges: Bridges | None = None
    """The bridges to other brokers, once they run."""

    _listens = False
    """Whether `listen` has been called; a standby that listens has started its audit, too."""

    log_level: str | None = None
    """The level of the log that a request has set, in place of the settings' until a reload."""

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock | None = None,
        authenticator: Authenticator | None = None,
        watcher: Watcher | None = None,
        observer: QueueObserver | None = None,
    ) -> None:
        self.settings = settings
        self.login: Login | None = None
        self.stats = Stats()
        self.store = store_of(settings)
        self.store.when_failed(self._store_failed)
        self.store.when_noticed(self._tell_notice)
        self.failure: Exception | None = None
        self.ended: Final = asyncio.Event()
        clock = SystemClock() if clock is None else clock
        hold_us = 0 if self.store.commits_at_once else settings.hold_ms * 1000
        self.journal = Journal(self.store, clock, hold_us=hold_us, stats=self.stats)
        self.accounts: Final = StoredAccounts(self.store, self.journal)
        self.api_tokens: Final = StoredTokens(self.store, self.journal)
        self._spans: Final = exporter_of(settings, self.stats, self._tell_lost_spans)
        self._tracer: MessageTracer | None = None
        self._beside: Final = SpawnedTasks()
        router = self._router(clock, observer)
        self.container = self._container(
            router,
            authenticator or self._own_login(),
            log_watcher() if watcher is None else watcher,
            clock=clock,
        )
        self._user_changes = self._audited(clock)
        declare(router, self.journal)
        self.configuration: ConfigurationSource | None = None
        management = self._management()
        self.container.service = management
        self.container.claims_service = self._claims_service()
        self.contents: LargeBodyStore | None = None
        self.listeners = Listeners(
            self.container,
            settings.listeners(),
            stall_timeout_ms=settings.stall_timeout_ms,
            limits=connection_limits(settings),
        )
        self._users_watch: Final = self._watch_of_users()
        self.windows = Windows(self.store, self.journal, router.context.paging)
        self._has_started = False
        self.http = self._http_server(management)
        self._working: list[asyncio.Task[None]] = []

    def _router(self, clock: Clock, observer: QueueObserver | None) -> Router:
        check_bridges(self.settings)
        if self._spans is not None:
            self._tracer = observer = tracer_of(
                self._spans, self.journal, clock=clock, observer=observer
            )
        return router_of(
            self.settings,
            self.store,
            self.journal,
            clock=clock,
            stats=self.stats,
            observer=observer,
        )

    def _container(
        self, router: Router, authenticator: Authenticator, watcher: Watcher, *, clock: Clock
    ) -> Container:
        settings = self.settings
        container = Container(
            name=f"{PRODUCT}-{os.getpid()}",
            router=router,
            journal=self.journal,
            clock=clock,
            stats=self.stats,
            limits=limits_of(settings),
            authenticator=authenticator,
            access=access_of(settings),
            watcher=watcher,
            credit=settings.credit,
            product={"product": PRODUCT, "version": __version__, BUILD: build_kind()},
        )
        container.adopts_subscriptions = settings.ownership == ADOPT
        if settings.ha.enabled:
            ha = settings.ha
            container.group = BrokerGroup(ha.name, router.timer_queue, prefers=ha.prefer)
        container.shard_hosts = shard_hosts_of(settings)
        return container

    def _own_login(self) -> Login:
        self.login = login_of(
            self.settings,
            lambda text: self.container.watcher.noticed(KEYS_NOT_READ.notice(text)),
            self.accounts,
            package=authenticator_of(self.settings),
        )
        self.login.tell_spray = self._tell_spray
        self.login.api_tokens = self.api_tokens.tokens
        return self.login

    def _tell_lost_spans(self, text: str) -> None:
        self.container.watcher.noticed(SPANS_LOST.notice(text))

    def _tell_spray(self, user: str, failures: int) -> None:
        text = f"{failures} logins of user {user!r} have failed within an hour: is it attacked?"
        self.container.watcher.noticed(SPRAYED.notice(text))
        self.container.audit.record(sprayed(user, failures))

    def _audited(self, clock: Clock) -> UserChanges | None:
        """Turn the audit on, if the settings say so; return what records changes of users."""
        folder = self.settings.audit_folder()
        container = self.container
        if self.settings.store.startswith(POSTGRESQL) and not self.settings.audit.is_chosen():
            container.watcher.noticed(AUDIT_MISSING.notice(AUDIT_MISSING.title))
        if folder is None:
            return None
        container.audit = audit_of(self.settings, folder, clock=clock, watcher=container.watcher)
        container.watcher = audit_watcher(container.watcher, container.audit)
        audit_messages(self.settings, container)
        login = self.login
        return None if login is None else UserChanges(lambda: login.users, container.audit)

    def _watch_of_users(self) -> UsersWatch | None:
        if self.login is None:
            return None
        return UsersWatch(self.login, self.container, self._user_changes)

    def _management(self) -> Management:
        login = self.login
        # as the login is at the time of a request; an embedded broker has no users file
        accounts = (
            None
            if login is None
            else lambda: LoginRules(login.users, login.anonymous, login.throttle)
        )
        changes = self._user_changes
        return Management(
            self.container,
            self.store,
            self._beside.spawn,
            accounts=accounts,
            api_tokens=None if login is None else self.api_tokens,
            users_changed=None if changes is None else changes.record,
            settings=lambda: self.configuration,
            listeners=lambda: [each.name for each in self.settings.listeners()],
            acl_file=lambda: self.settings.acl_file,
        )

    def _http_server(self, management: Management) -> HttpServer | None:
        return http_of(
            self.settings,
            self.container,
            self.store,
            management=management,
            obstacles=self.obstacles,
            has_started=self._is_up,
        )

    def _claims_service(self) -> Service | None:
        if self.login is None or self.login.tokens is None:
            return None
        # a broker without tokens is spared the module
        from broker.management.claims import ClaimsService

        return ClaimsService(self.container, self._beside.spawn)

    async def start(self) -> None:
        """Restore the store, and listen at the addresses of the settings."""
        await self._recover()
        audit = self.container.audit
        if not self._listens:
            await audit.start()  # after the store is opened: a start that it refuses writes nothing
        self.container.router.changes.are_recorded = audit.is_on
        audit.record(self._event("broker.started"))
        self._guard_disk()
        self.container.memory_guard.begin()
        committing = self.journal.run(self._after_commit)
        for work in (committing, self.windows.run(self._after_load)):
            task = asyncio.get_running_loop().create_task(work)
            task.add_done_callback(self._work_ended)
            self._working.append(task)
        if self.contents is not None:
            self.contents.start(self.container.run_round)
        if self._spans is not None:
            self._spans.start()
        if self.group is not None:
            await self._lead(self.group)
        if not self._listens:
            await self.listen()
        self._has_started = True
        self.bridges = bridges_of(self.settings, self.container)

    async def listen(self) -> None:
        """Accept connections; of a broker that stands by, before its start."""
        self._listens = True
        if self.http is not None:
            await self.http.start()
        if self.login is not None:
            self.login.start()
        if self._users_watch is not None:
            self._users_watch.start()
        await self.listeners.listen()

    async def _lead(self, group: BrokerGroup) -> None:
        """Serve clients as the leader of `group`, as long as it is proved that it leads."""
        if self.leading is None:
            self.leading = leading_of(
                self.settings,
                self.container,
                self.listeners,
                store=self.store,
                lost=self._store_failed,
            )
        await self.leading.start(group)

    def _guard_disk(self) -> None:
        """Begin to guard the free space of the disk, if the store is on one."""
        least = max(self.settings.disk_free_min, self.settings.disk_ballast)
        if least and self.store.free_bytes() >= 0:
            router = self.container.router
            space = StoreSpace(self.store, self.journal, router.staging_area)
            guard = DiskGuard(router.context.routing, space, least)
            router.credit_policy.disk_guard = guard
            guard.begin()

    async def _recover(self) -> None:
        """Open the store and restore its content."""
        store = self.store
        await store.open()
        if not self.accounts.is_loaded or self.group is not None:
            await self.load_accounts()
        router = self.container.router
        if store.keeps_contents:
            self.contents = LargeBodyStore(self.journal, store)
            self.container.contents = router.context.bodies = self.contents
        await restore(store, router, self.journal.batch)
        self._tell_quarantined()

    async def load_accounts(self) -> None:
        """Load the users of the store; if the broker must not run with them, SettingsError."""
        login = self.login
        if login is None:
            return
        for notice in await self.accounts.load():
            self.container.watcher.noticed(USER_DAMAGED.notice(notice))
        await self.api_tokens.load()
        try:
            settle_login(self.settings, login)
        except SettingsError:
            await self.store.close()
            raise

    def _tell_notice(self, text: str) -> None:
        self.container.watcher.noticed(STORE_NOTICE.notice(text))

    def _tell_quarantined(self) -> None:
        """Report messages that were quarantined since the last call."""
        found = self.store.quarantined
        if found > self.stats.quarantined:
            text = (
                f"{found} stored messages are damaged and will not be delivered;"
                " `jms-broker store quarantined` shows them"
            )
            self.container.watcher.noticed(DAMAGED_MESSAGES.notice(text))
        self.stats.quarantined = found

    def _after_commit(self) -> None:
        if self._tracer is not None:
            self._tracer.committed()
        disk_guard = self.container.router.credit_policy.disk_guard
        if disk_guard is not None and not disk_guard.is_short and self.store.is_full():
            disk_guard.look()  # the commit used the room of the ballast, which is gone now
        self.container.run_round()

    def _after_load(self) -> None:
        self._tell_quarantined()
        self.container.run_round()

    def _work_ended(self, task: asyncio.Task[None]) -> None:
        """Close all connections if the store failed: deliveries in doubt get no answer."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._store_failed(error if isinstance(error, StoreError) else StoreError(str(error)))

    def _store_failed(self, failure: StoreError) -> None:
        if self.failure is None:
            self.failure = failure
            reason = {"reason": str(failure)}
            self.container.audit.record(
                AuditEvent(action="store.failed", result=FAILED, after=reason)
            )
        self.accounts.close("the store failed")
        self.listeners.stop_accepting()
        self.listeners.drop_connections()
        self.ended.set()

    def _is_up(self) -> bool:
        """Return whether the start is complete; that of a standby is when it listens."""
        return self._has_started or (self.group is not None and self._listens)

    def obstacles(self) -> list[str]:
        """Return the reasons for which the broker does not serve clients now, none if it does."""
        found = {
            "the listeners are not up": not self._is_up(),
            "the store failed": self.failure is not None,
            "the store is away": self.store.is_away(),
            "the broker is stopping": self.container.drain.keeps_clients_out(),
            "standby": self.group is not None and not self.group.leads,
            "it is not proved that the broker leads": self.listeners.is_frozen,
        }
        return [reason for reason, is_so in found.items() if is_so]

    @property
    def group(self) -> BrokerGroup | None:
        """The group that the broker is a member of, None without one."""
        return self.container.group

    @property
    def port(self) -> int:
        """The port of the first listener, once it listens."""
        return self.listeners.each[0].port

    def url(self) -> str:
        """Return the URL of the first listener, once it listens."""
        return self.listeners.each[0].url()

    async def stop(self, patience_s: float = STOP_TIMEOUT_S) -> None:
        """Close every connection with `amqp:connection:forced`, then the parts, the store last."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + STOP_TIMEOUT_S
        if self.bridges is not None:
            await self.bridges.stop()
        if self._users_watch is not None:
            self._users_watch.stop()
        if self.leading is not None:
            self.leading.stop()
        self.listeners.stop_accepting()
        if self.group is not None:
            self._leave(self.group)
        self.container.close_all(ConnectionFault(CONNECTION_FORCED, "the broker is stopping"))
        self.container.run_round()
        await asyncio.gather(self.listeners.close(patience_s), self._stop_http())
        self.container.end_termini()
        self.container.router.staging_area.store_kept(self.journal.batch)
        if self.login is not None:
            self.login.stop()
        self.windows.close()
        if self.contents is not None:
            await self.contents.close()
        self.journal.close()
        if self._working and self.failure is None:
            left_s = max(STORE_TIMEOUT_MIN_S, ends - loop.time())
            _, late = await asyncio.wait(self._working, timeout=left_s)
            if late:  # not cancelled: a commit may be under way
                self.failure = StoreError("the store did not answer: what was sent is in doubt")
        self.accounts.close("the broker is stopping")
        await self.store.close()
        if self._spans is not None:
            await asyncio.to_thread(self._spans.stop)
        # requests that wait for a commit get no answer if it will never be made
        await self._beside.end(cancel=self.failure is not None)
        self.container.audit.record(self._event("broker.stopped"))
        await self.container.audit.close()

    def _leave(self, group: BrokerGroup) -> None:
        """Send clients to the heir, if there is one; those that are held are told of the stop."""
        if group.heir:
            self.store.hand_over_to(group.heir)
            group.another_leads(group.heir, group.members)
        group.stop()

    def _event(self, action: str) -> AuditEvent:
        facts = {"version": __version__, "pid": os.getpid(), "store": self.store.name}
        return AuditEvent(action=action, resource=f"broker:{self.container.name}", after=facts)

    def prepare_listeners(self, settings: Settings) -> list[PreparedListener]:
        """Return what puts the TLS of `settings` into force, for new connections.

        The files are read anew. Raise TlsError if one of them cannot be used.
        """
        prepared = self.listeners.prepare(settings.listeners())
        if self.http is not None and settings.http.tls and settings.tls is not None:
            prepared.append(self.http.prepare(settings.tls))
        return prepared

    async def _stop_http(self) -> None:
        if self.http is not None:
            await self.http.stop()
