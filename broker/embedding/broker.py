"""`Broker`: one broker inside this process, from `with` to the end of the block."""

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
    # no users of whoever runs the test
    "users_file": os.devnull,
    # nobody is silent for too long because a test let an hour pass
    "idle_time_out_ms": 0,
    "handshake_timeout_ms": UINT_MAX,
}
"""What an embedded broker sets otherwise than one that is served."""

PATIENCE_S: Final = 5.0
"""So long a condition may take to come true, where nothing else is said."""

LOOK_EVERY_S: Final = 0.002

FAREWELL_S: Final = 0.1
"""So long clients may take to answer our close. A blocking client between two calls never does."""


@final
class Broker:
    """A broker of this process alone, on a free port of 127.0.0.1; nothing outlives the block.

    `async with Broker()` runs it on the running loop, `with Broker()` on a loop in
    a thread of its own. Everybody may enter, or only `users` (passwords by name). Any
    other setting of `config/broker.toml` may be given; files and environment are
    not read. What is offered here may be called from every thread.
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

    # -- where it is

    @property
    def url(self) -> str:
        """`amqp://127.0.0.1:PORT`."""
        return self._app().url()

    @property
    def http_url(self) -> str:
        """`http://127.0.0.1:PORT`, where the setting `http` has a port."""
        http = self._app().http
        if http is None:
            raise RuntimeError("this broker has no HTTP: give it http={'port': 0}")
        return http.url()

    def url_for(self, user: str) -> str:
        """The address with the name and password of `user`, for clients that take them there."""
        scheme, _, place = self.url.partition("://")
        return f"{scheme}://{quote(user, safe='')}:{quote(self.users[user], safe='')}@{place}"

    # -- what it holds, and what it has seen

    def messages(self, address: str) -> list[MessageView]:
        """What waits at `address` in order of delivery, without what consumers hold unsettled."""
        return self._call(lambda app: waiting_at(address, app.container))

    def scheduled(self, address: str) -> list[MessageView]:
        """What waits for its delivery time at `address`; `clock.advance` makes it fall due."""
        return self._call(lambda app: scheduled_at(address, app.container))

    def settled(self, address: str) -> list[Settlement]:
        """How deliveries from `address` ended, the oldest first: the last 10,000 of the broker."""
        record = self._record
        return self._call(lambda _: record.of(address))

    def wait_until(self, condition: Callable[[], T], *, within_s: float = PATIENCE_S) -> T:
        """What `condition` returns as soon as it is true; TimeoutError where that takes too long.

        What a client has sent takes a moment to arrive. Never in the broker's own
        loop, which this would hold up: there it is `until`.
        """
        deadline = time.monotonic() + within_s
        while not (result := condition()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"not within {within_s} s: the last result was {result!r}")
            time.sleep(LOOK_EVERY_S)
        return result

    async def until(self, condition: Callable[[], T], *, within_s: float = PATIENCE_S) -> T:
        """`wait_until` for coroutines."""
        deadline = time.monotonic() + within_s
        while not (result := condition()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"not within {within_s} s: the last result was {result!r}")
            await asyncio.sleep(LOOK_EVERY_S)
        return result

    # -- what happens to it

    def _let_pass(self, milliseconds: int) -> None:
        self._call(lambda app: let_pass(milliseconds, self.clock, app.container))

    def _drop_connections(self) -> int:
        return self._call(lambda app: app.listener.drop_connections())

    def _app(self) -> App:
        if self._running is None:
            raise RuntimeError("the broker runs within its `with` block only")
        return self._running[1]

    def _call(self, function: Callable[[App], T]) -> T:
        app = self._app()
        assert self._running is not None
        return call_on(self._running[0], lambda: function(app))
