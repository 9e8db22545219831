"""The broker put together: the only place that knows which part is made of what."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from broker import __version__
from broker.amqp.errors import CONNECTION_FORCED, ConnectionFault
from broker.amqp.limits import Limits
from broker.clock import Clock, SystemClock
from broker.compiled import BUILD, build_kind
from broker.journal import Journal
from broker.large_body_store import LargeBodyStore
from broker.links.container import Authenticator, Container, Watcher
from broker.links.recovery import Recovery
from broker.machine import default_memory_max
from broker.management.management import Management
from broker.management.users import LoginRules
from broker.net.listener import Listener
from broker.net.login import Login
from broker.routing.addresses.policy import AddressPolicy, Policies
from broker.routing.addresses.prefixes import Prefixes
from broker.routing.batches.staging_area import StagingArea
from broker.routing.credit.disk_guard import DiskGuard, Space
from broker.routing.entries.participants import QueueObserver
from broker.routing.errors import RoutingError
from broker.routing.queues.message_events import EventLogLimits
from broker.routing.queues.node import QUEUE, TOPIC
from broker.routing.router import Router
from broker.security.authenticate import is_loopback, open_users
from broker.settings import (
    MEMORY,
    POSTGRESQL,
    SQLITE,
    AddressSettings,
    NodeSettings,
    Settings,
    SettingsError,
)
from broker.stats import Stats
from broker.windows import Windows
from storage.api import Store, StoreError
from storage.batch import Batch
from storage.memory import MemoryStore

if TYPE_CHECKING:
    from broker.http.server import HttpServer

T = TypeVar("T")

PRODUCT = "jms-broker"

LOADED_AT_ONCE = 1000
"""Scheduled and leased messages that are loaded together at a start."""

WRITTEN_TIMES: Final = 3
"""A message goes into a log first and stays there for a while; pages of a file are never full."""

STOP_TIMEOUT_S = 8.0
"""So long a stop waits for peers to answer our close; a service manager kills after ten."""

STORE_TIMEOUT_MIN_S = 1.0
"""So long at least it then waits for the store."""


class App:
    """One broker: store, router, container and listener, with their order of start and stop.

    Who embeds it may bring the clock, who may enter (`login` is None then), and who looks on.
    """

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
        self.port = settings.port
        self.login: Login | None = None
        self.stats = Stats()
        self.store = store_of(settings)
        self.store.when_failed(self._store_failed)
        self.failure: Exception | None = None
        self.ended: Final = asyncio.Event()
        clock = SystemClock() if clock is None else clock
        hold_us = 0 if self.store.commits_at_once else settings.hold_ms * 1000
        self.journal = Journal(self.store, clock, hold_us=hold_us)
        router = self._router(clock, observer)
        self.container = Container(
            name=f"{PRODUCT}-{os.getpid()}",
            router=router,
            journal=self.journal,
            clock=clock,
            stats=self.stats,
            limits=limits_of(settings),
            authenticator=authenticator or self._own_login(),
            watcher=_log() if watcher is None else watcher,
            credit=settings.credit,
            product={"product": PRODUCT, "version": __version__, BUILD: build_kind()},
        )
        _declare(router, self.journal)
        self.container.service = self._management()
        self.contents: LargeBodyStore | None = None
        self.listener = Listener(self.container, stall_timeout_ms=settings.stall_timeout_ms)
        self.windows = Windows(self.store, self.journal, router.paging)
        self.http = _http(settings, self.container, self.store)
        self._working: list[asyncio.Task[None]] = []
        self._beside: Final[set[asyncio.Task[None]]] = set()

    def _own_login(self) -> Login:
        self.login = login_of(self.settings)
        return self.login

    def _management(self) -> Management:
        login = self.login
        # as the login is at the time of a request; an embedded broker has no users file
        accounts = None if login is None else lambda: LoginRules(login.users, login.anonymous)
        return Management(self.container, self.store, self._spawn, accounts=accounts)

    def _router(self, clock: Clock, observer: QueueObserver | None) -> Router:
        settings = self.settings
        return Router(
            clock=clock,
            stats=self.stats,
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
            hold=self.journal.hold,
            commits_take_time=not self.store.commits_at_once,
            paging_window=paging_window_of(settings, self.store),
        )

    async def start(self) -> None:
        """Listen on the settings' address; `port` is known from then on."""
        await self._recover()
        self._keep_reserve()
        self.container.memory_guard.begin()
        committing = self.journal.run(self._after_commit)
        for work in (committing, self.windows.run(self._after_load)):
            task = asyncio.get_running_loop().create_task(work)
            task.add_done_callback(self._work_ended)
            self._working.append(task)
        if self.contents is not None:
            self.contents.start(self.container.run_round)
        if self.http is not None:
            await self.http.start()
        self.port = await self.listener.listen(self.settings.bind, self.settings.port)

    def _keep_reserve(self) -> None:
        """See to it that the disk does not run full, where there is one."""
        least = max(self.settings.disk_free_min, self.settings.disk_ballast)
        if least and self.store.free_bytes() >= 0:
            router = self.container.router
            space = StoreSpace(self.store, self.journal, router.stages)
            router.disk_guard = DiskGuard(router, space, least)
            router.disk_guard.begin()

    async def _recover(self) -> None:
        """Open the store, and bring back what it holds."""
        store = self.store
        await store.open()
        for notice in store.notices:
            self.container.watcher.noticed(notice)
        router = self.container.router
        if store.keeps_contents:
            self.contents = LargeBodyStore(self.journal, store)
            self.container.contents = router.contents = self.contents
        await recover(store, router, self.journal.batch)
        self._tell_quarantined()

    def _tell_quarantined(self) -> None:
        """Tell of messages that have been found damaged since the last time."""
        found = self.store.quarantined
        if found > self.stats.quarantined:
            self.container.watcher.noticed(
                f"{found} stored messages are damaged and will not be delivered;"
                " `jms-broker store quarantined` shows them"
            )
        self.stats.quarantined = found

    def _after_commit(self) -> None:
        disk_guard = self.container.router.disk_guard
        if disk_guard is not None and not disk_guard.is_short and self.store.is_full():
            disk_guard.look()  # the commit has had the room of the ballast: there is no more of it
        self.container.run_round()

    def _after_load(self) -> None:
        self._tell_quarantined()
        self.container.run_round()

    def _work_ended(self, task: asyncio.Task[None]) -> None:
        """Where the store has failed: what is in doubt stays unanswered, everybody is cut off."""
        if task.cancelled() or task.exception() is None:
            return
        self._store_failed(StoreError(str(task.exception())))

    def _store_failed(self, failure: StoreError) -> None:
        self.failure = failure if self.failure is None else self.failure
        self.listener.stop_accepting()
        self.listener.drop_connections()
        self.ended.set()

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    def url(self) -> str:
        """Where it listens, once it does."""
        host = f"[{self.settings.bind}]" if ":" in self.settings.bind else self.settings.bind
        return f"amqp://{host}:{self.port}"

    async def stop(self, patience_s: float = STOP_TIMEOUT_S) -> None:
        """Close every connection with `amqp:connection:forced`, then everything else."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + STOP_TIMEOUT_S
        self.listener.stop_accepting()
        self.container.close_all(ConnectionFault(CONNECTION_FORCED, "the broker is stopping"))
        self.container.run_round()
        await asyncio.gather(self.listener.close(patience_s), self._stop_http())
        self.windows.close()
        if self.contents is not None:
            await self.contents.close()
        self.journal.close()
        if self._working and self.failure is None:
            left_s = max(STORE_TIMEOUT_MIN_S, ends - loop.time())
            _, late = await asyncio.wait(self._working, timeout=left_s)
            if late:  # not to be cancelled: a commit may be under way
                self.failure = StoreError("the store did not answer: what was sent is in doubt")
        await self.store.close()
        await self._end_answers()

    async def _end_answers(self) -> None:
        """Let end what answers requests; after a failure it may wait for a commit that never is."""
        answering = list(self._beside)
        if self.failure is not None:
            for task in answering:
                task.cancel()
        for task in answering:
            with suppress(asyncio.CancelledError):
                await task

    async def _stop_http(self) -> None:
        if self.http is not None:
            await self.http.stop()


class StoreSpace(Space):
    """Where a store writes, less what is on its way there, and what commits of sinks will write."""

    def __init__(self, store: Store, journal: Journal, stages: StagingArea) -> None:
        self._store: Final = store
        self._journal: Final = journal
        self._stages: Final = stages

    def is_away(self) -> bool:
        return self._store.is_away()

    def is_full(self) -> bool:
        return self._store.is_full()

    def free_bytes(self) -> int:
        free = self._store.free_bytes()
        if free < 0:
            return free
        to_be_written = int(self._journal.unwritten_bytes() + self._stages.bytes)
        return max(0, free - WRITTEN_TIMES * to_be_written)


async def recover(store: Store, router: Router, batch: Batch) -> None:
    """Bring back what an open store holds; what that changes in it goes into `batch`."""
    router.number_from(store.first_number)
    router.event_log.number_from(store.first_event)
    recovery = Recovery(router, batch)
    leases = await store.leases()
    recovery.nodes(await store.nodes(), leases)
    for subscription in await store.subscriptions():
        recovery.subscription(subscription)
    for sink in await store.sinks():
        recovery.sink(sink)
    for stage in await store.stages():
        recovery.stage(stage)
    recovery.deliveries(await store.delivered())
    recovery.leases(leases)
    behind = 0
    while ids := await store.ids(behind):
        behind = int(ids[-1].number)
        for stored_id in ids:
            recovery.remembered_id(stored_id)
    behind = 0
    while (part := await store.places(behind)).numbers:
        behind = part.numbers[-1]
        recovery.places(part)
    for numbers, take in (
        (recovery.scheduled(), recovery.message),
        (recovery.leased(), recovery.leased_message),
    ):
        for first in range(0, len(numbers), LOADED_AT_ONCE):
            for message in await store.load(numbers[first : first + LOADED_AT_ONCE]):
                take(message)
    for merge, places in recovery.merging.portions():
        found = await store.load(sorted(number for _, number in places))
        await store.commit(recovery.merging.move(merge, places, found))
    if recovery.merging.merges and store.quarantined > 0:
        recovery.merging.quarantined.update(await _queues_in_quarantine(store))
    recovery.finish()


async def _queues_in_quarantine(store: Store) -> set[str]:
    """The names of the queues that quarantined messages belong to."""
    queues: set[str] = set()
    behind = 0
    while page := await store.quarantined_messages(behind, LOADED_AT_ONCE):
        behind = page[-1].number
        queues.update(each.queue for each in page)
    return queues


def store_of(settings: Settings) -> Store:
    """The store that the settings name; SQL is imported only where it is asked for."""
    text = settings.store
    if text == MEMORY:
        return MemoryStore()
    if text.startswith(POSTGRESQL):
        from storage.sql.postgresql.store import PostgresStore

        return PostgresStore(text, grace_ms=settings.store_loss_grace_ms)
    from storage.sql.sqlite.store import SqliteStore

    return SqliteStore(Path(text.removeprefix(SQLITE)), ballast_bytes=settings.disk_ballast)


def paging_window_of(settings: Settings, store: Store) -> int:
    """How much of a backlog stays in memory; a store in memory would not free any."""
    return -1 if store.commits_at_once else settings.paging_window


def _declare(router: Router, journal: Journal) -> None:
    """Make the nodes of the settings; SettingsError where one of them cannot be."""
    try:
        router.declare(journal.batch)
    except RoutingError as refusal:
        raise SettingsError(f"a declared queue or topic: {refusal}") from None


def login_of(settings: Settings) -> Login:
    """Who may enter; SettingsError where the broker must not run so."""
    users, anonymous = open_users(settings)
    return Login(
        users, anonymous=anonymous, all_administer=anonymous and is_loopback(settings.bind)
    )


def _http(settings: Settings, container: Container, store: Store) -> HttpServer | None:
    """The server for HTTP where one is asked for; SettingsError where the extra is missing."""
    if settings.http.port is None:
        return None
    try:
        from broker.http.server import HttpServer
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"http.port is set, and {error.name} is not installed: pip install 'jms-broker[http]'"
        ) from None
    return HttpServer(settings.http, container, store)


def _log() -> Watcher:
    # an embedded broker has a watcher of its own, and is spared structlog
    from broker.net.log import Log

    return Log()


def limits_of(settings: Settings) -> Limits:
    """What a peer may do, as the engine takes it."""
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
    )


def policies_of(settings: Settings) -> Policies:
    """What is configured for addresses, as the router takes it."""
    general = AddressSettings(pattern="*")
    kinds = ((QUEUE, settings.queue), (TOPIC, settings.topic))
    return Policies(
        [(address.pattern, _policy(settings, address)) for address in settings.address],
        _policy(settings, general),
        settings.default_kind,
        declared={
            (kind, _address(settings, node.name, kind)): _policy(
                settings, _declared(settings, node)
            )
            for kind, nodes in kinds
            for node in nodes
        },
        prefixes=Prefixes(tuple(settings.address_prefixes)),
        auto_create_max=settings.auto_create_max,
    )


def _address(settings: Settings, name: str, kind: str = QUEUE) -> str:
    """The canonical address of a node that the settings name (DST-10); SettingsError for none."""
    prefixes = Prefixes(tuple(settings.address_prefixes))
    try:
        prefixes.kind_meant(name, kind)
        return prefixes.canonical(name)
    except RoutingError as refusal:
        raise SettingsError(f"a queue or topic of the settings: {refusal}") from None


def _declared(settings: Settings, node: NodeSettings) -> AddressSettings:
    """What differs for a declared node: what it says, then what the pattern of its name does."""
    chosen: dict[str, object] = {"pattern": "*"}
    for address in settings.address:
        if fnmatchcase(node.name, address.pattern):
            chosen = address.model_dump(exclude_none=True)
            break
    chosen.update(node.model_dump(exclude_none=True, exclude={"name"}))
    return AddressSettings.model_validate(chosen)


def _policy(settings: Settings, address: AddressSettings) -> AddressPolicy:
    return AddressPolicy(
        auto_create=_chosen(address.auto_create, settings.auto_create),
        auto_delete_after_ms=_chosen(address.auto_delete_after_ms, settings.auto_delete_after_ms),
        dead_letter=_address(settings, _chosen(address.dead_letter, settings.dead_letter)),
        expiry=_address(settings, _chosen(address.expiry, settings.expiry)),
        max_delivery_count=_chosen(address.max_delivery_count, settings.max_delivery_count),
        redelivery_delay_ms=_chosen(address.redelivery_delay_ms, settings.redelivery_delay_ms),
        redelivery_backoff=_chosen(address.redelivery_backoff, settings.redelivery_backoff),
        redelivery_delay_max_ms=_chosen(
            address.redelivery_delay_max_ms, settings.redelivery_delay_max_ms
        ),
        max_messages=_chosen(address.max_messages, settings.max_messages),
        max_bytes=_chosen(address.max_bytes, settings.max_bytes),
        full=_chosen(address.full, settings.full),
        exclusive=_chosen(address.exclusive, settings.exclusive),
        duplicate_window=_chosen(address.duplicate_window, settings.duplicate_window),
        duplicate_window_ms=_chosen(address.duplicate_window_ms, settings.duplicate_window_ms),
        deliver_before_commit=_chosen(
            address.deliver_before_commit, settings.deliver_before_commit
        ),
        event_log=_chosen(address.event_log, settings.event_log),
        dead_letter_properties=_chosen(
            address.dead_letter_properties, settings.dead_letter_properties
        ),
    )


def _chosen(special: T | None, general: T) -> T:
    return general if special is None else special
