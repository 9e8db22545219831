"""`Broker`: a broker in this process that runs for the duration of a `with` block."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Final, Self, TypeVar, final
from urllib.parse import quote

from broker.app import App
from broker.embedding.clock import VirtualClock, let_pass
from broker.embedding.faults import Faults
from broker.embedding.host import LoopThread, call_on
from broker.embedding.login import GivenUsers
from broker.embedding.look import scheduled_at, waiting_at
from broker.embedding.message import MessageView
from broker.embedding.settlement_recorder import Settlement, SettlementRecorder
from broker.embedding.watch import Watch
from broker.setting_types import UINT_MAX
from broker.settings import given_settings

T = TypeVar("T")

DEFAULTS: Final[dict[str, object]] = {
    "bind": "127.0.0.1",
    "port": 0,
    # not the users file of the account that runs the test
    "users_file": os.devnull,
    # connections must not time out when a test advances the clock by an hour
    "idle_time_out_ms": 0,
    "handshake_timeout_ms": UINT_MAX,
    # a test may open hundreds of connections in one turn of its event loop
    "limit_loopback": False,
}
"""Settings whose defaults differ from those of a broker that is served."""

PATIENCE_S: Final = 5.0
"""Default maximum seconds for a condition to become true."""

LOOK_EVERY_S: Final = 0.002
"""Seconds between two evaluations of a condition."""

FAREWELL_S: Final = 0.1
"""Maximum seconds for clients to answer the close; a blocking client between calls never does."""


@final
class Broker:
    """A broker in this process, on a free port of 127.0.0.1. Nothing outlives its `with` block.

    `async with Broker()` runs it on the running event loop, `with Broker()` on an event loop in
    a thread of its own. All clients may connect, or only `users` (passwords by name). Any
    other setting of `config/broker.toml` may be given; files and environment are
    not read. Its methods may be called from any thread.
    """

    def __init__(
        self, *, store: str = "memory", users: Mapping[str, str] | None = None, **settings: object
    ) -> None:
        self._settings: Final = given_settings(**{**DEFAULTS, "store": store, **settings})
        self.users: Final = dict(users or {})
        self._authenticator: Final = GivenUsers(self.users) if self.users else None
        self._record = SettlementRecorder()
        self._thread: LoopThread | None = None
        self._running: tuple[asyncio.AbstractEventLoop, App] | None = None
        self.clock: Final = VirtualClock(self._let_pass)
        self.faults: Final = Faults(self._drop_connections)

    # -- start and stop

    async def __aenter__(self) -> Self:
        await self._start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stop()

    def __enter__(self) -> Self:
        thread = LoopThread()
        try:
            thread.run(self._start())
        except BaseException:
            thread.close()
            raise
        self._thread = thread
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.run(self._stop())
            thread.close()

    async def _start(self) -> None:
        if self._running is not None:
            raise RuntimeError("this broker runs already")
        self._record = SettlementRecorder()
        app = App(
            self._settings,
            clock=self.clock,
            authenticator=self._authenticator,
            watcher=Watch(),
            observer=self._record,
        )
        try:
            await app.start()
        except OSError:
            await app.stop(0)
            raise
        self._running = asyncio.get_running_loop(), app

    async def _stop(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            await running[1].stop(FAREWELL_S)

    # -- addresses

    @property
    def url(self) -> str:
        """`amqp://127.0.0.1:PORT`."""
        return self._app().url()

    @property
    def http_url(self) -> str:
        """`http://127.0.0.1:PORT`; RuntimeError if the setting `http` has no port."""
        http = self._app().http
        if http is None:
            raise RuntimeError("this broker has no HTTP: give it http={'port': 0}")
        return http.url()

    def url_for(self, user: str) -> str:
        """Return the URL with the name and password of `user`, for clients that read them there."""
        scheme, _, place = self.url.partition("://")
        return f"{scheme}://{quote(user, safe='')}:{quote(self.users[user], safe='')}@{place}"

    # -- messages and settlements

    def messages(self, address: str) -> list[MessageView]:
        """Return the ready messages at `address` in order of delivery, without unsettled ones."""
        return self._call(lambda app: waiting_at(address, app.container))

    def scheduled(self, address: str) -> list[MessageView]:
        """Return the messages at `address` that wait for their delivery time.

        `clock.advance` makes them due.
        """
        return self._call(lambda app: scheduled_at(address, app.container))

    def settled(self, address: str) -> list[Settlement]:
        """Return the settlements of deliveries from `address`, the oldest first.

        The broker keeps its last 10,000 settlements, of messages of at most 64 MiB in all.
        """
        record = self._record
        return self._call(lambda app: record.of(app.container.router.parse(address)))

    def wait_until(self, condition: Callable[[], T], *, within_s: float = PATIENCE_S) -> T:
        """Return the result of `condition` once it is true; TimeoutError after `within_s` seconds.

        Needed because messages that a client has sent take a moment to arrive. Blocks its thread:
        in the broker's own event loop use `until`.
        """
        deadline = time.monotonic() + within_s
        while not (result := condition()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"not within {within_s} s: the last result was {result!r}")
            time.sleep(LOOK_EVERY_S)
        return result

    async def until(self, condition: Callable[[], T], *, within_s: float = PATIENCE_S) -> T:
        """Like `wait_until`, for coroutines."""
        deadline = time.monotonic() + within_s
        while not (result := condition()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"not within {within_s} s: the last result was {result!r}")
            await asyncio.sleep(LOOK_EVERY_S)
        return result

    # -- calls in the thread of the event loop

    def _let_pass(self, milliseconds: int) -> None:
        self._call(lambda app: let_pass(milliseconds, self.clock, app.container))

    def _drop_connections(self) -> int:
        return self._call(lambda app: app.listeners.drop_connections())

    def _app(self) -> App:
        if self._running is None:
            raise RuntimeError("the broker runs within its `with` block only")
        return self._running[1]

    def _call(self, function: Callable[[App], T]) -> T:
        app = self._app()
        assert self._running is not None
        return call_on(self._running[0], lambda: function(app))
