"""A broker as a process of its own: the first and last lines of its log, and its signals."""

from __future__ import annotations

import asyncio
import gc
import os
import platform
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import structlog

from broker import __version__
from broker.app import STOP_TIMEOUT_S, App
from broker.audit.heads import HeadLog
from broker.compiled import COMPILED, SLOWER, is_compiled
from broker.journal import SWITCH_INTERVAL_S
from broker.log_events import (
    AUDIT_HEAD,
    NOT_LEADING,
    READY,
    STANDING_BY,
    STARTING,
    STOPPED,
    STOPPING,
    STORE_FAILED,
)
from broker.log_lines import configure_logging, say, write_line
from broker.net.trim import Trimmer
from broker.reload import Reloading, reload
from broker.served_drain import ServedDrain
from broker.service_notifier import ServiceNotifier
from broker.settings import Settings
from broker.shard_settings import SUPERVISED
from storage.api import LeadershipError, StoreError

HAND_OVER_S: Final = 0.5
"""Seconds that clients get to answer the close of their connections before another broker leads."""

ANSWER_S: Final = 0.25
"""Seconds for the answer to a client that has another broker lead, before connections close."""

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class Signals:
    """The handlers of the process's signals.

    SIGTERM and SIGINT stop the broker in order, and end the process at once if they come again. A
    process that `is_told` to end does not stand by when its broker hands over, or is replaced. If
    the settings say so, SIGTERM first drains a broker that is ready. SIGHUP reloads the settings;
    where standard input was a terminal when the broker started, that terminal has been closed, and
    the broker stops in order.
    """

    def __init__(self, app: App, load: Callable[[], Settings], *, on_terminal: bool) -> None:
        self._app: Final = app
        self._load: Final = load
        self._on_terminal: Final = on_terminal
        self._is_up = False
        self._must_reload = False
        self._hands_over = False
        self.is_told = False
        self._notifier: Final = ServiceNotifier()
        self._drain: Final = ServedDrain(app, self._drained, self._notifier)
        app.container.drain.owner = self._drain
        self.reason = ""

    def listen(self, loop: asyncio.AbstractEventLoop) -> None:
        """Install the handlers, in place of Python's own."""
        with suppress(NotImplementedError):  # Windows: a signal ends the process
            for number in STOP_SIGNALS:
                loop.add_signal_handler(number, self._stop, number.name)
            loop.add_signal_handler(signal.SIGHUP, self._hang_up)
        if os.environ.get(SUPERVISED):
            loop.add_reader(sys.stdin.fileno(), self._abandoned, loop)

    def up(self) -> None:
        """Note that the broker is ready, and do a reload that was requested before."""
        self._is_up = True
        if self._must_reload:
            reload(self._app, self._load)
        self._notifier.ready(_status(self._app))

    def standing_by(self, leader: str) -> None:
        """Tell the service manager that the start is complete, though another broker leads."""
        self._notifier.ready(f"standby of {leader}")

    def hand_over(self) -> None:
        """Stop in a moment, so that another member of the group takes over; then stand by."""
        self._hands_over = True
        asyncio.get_running_loop().call_later(ANSWER_S, self._handed_over)

    def _handed_over(self) -> None:
        self._end(self.reason or "the lead is handed over")

    def release(self, loop: asyncio.AbstractEventLoop, *, ignore: bool) -> None:
        """Handle signals no longer: `ignore` them, or let them end the process at once.

        A stop that is complete must not look like a crash. A process that is to stand by may be
        told to end before its next program handles signals.
        """
        with suppress(NotImplementedError):
            for number in (*STOP_SIGNALS, signal.SIGHUP):
                loop.remove_signal_handler(number)
                signal.signal(number, signal.SIG_IGN if ignore else signal.SIG_DFL)

    def _stop(self, name: str) -> None:
        if self.is_told or (self._app.ended.is_set() and not self._hands_over):
            os._exit(1)
        self.is_told = True
        self.reason = name
        if self._hands_over:
            return  # it is about to end anyway
        drains = name == signal.SIGTERM.name and self._app.settings.drain.on_sigterm
        if drains and self._is_up:
            self._drain.begin()
        else:
            self._end(name)

    def _abandoned(self, loop: asyncio.AbstractEventLoop) -> None:
        """Stop in order: the supervisor, which writes nothing, has ended."""
        loop.remove_reader(sys.stdin.fileno())
        if not self.is_told:
            self.is_told = True
            self._end("the supervisor of the shards has ended")

    def _drained(self) -> None:
        self.is_told = True
        self._end(self.reason or "drained")

    def _end(self, reason: str) -> None:
        self._notifier.stopping(f"stopping: {reason}")
        self.reason = reason
        self._app.ended.set()

    def _hang_up(self) -> None:
        if not self._on_terminal:
            self._must_reload = True
            if self._is_up:
                self._notifier.reloading()
                reload(self._app, self._load)
                self._notifier.ready(_status(self._app))
        elif not self._app.ended.is_set():
            self.is_told = True
            self._end("SIGHUP: the terminal was closed")


def _status(app: App) -> str:
    return f"serving at {app.url()}"


def ready_line(app: App) -> str:
    """Return the line of standard output that says that the broker is ready, and its URLs."""
    urls = "".join(f" {name}={url}" for name, url in other_urls(app).items())
    return f"ready {app.url()} store={app.store.name} pid={os.getpid()}{urls}"


def other_urls(app: App) -> dict[str, str]:
    """Return the URLs besides the first, by the name of their listener."""
    urls = {} if app.http is None else {"http": app.http.url()}
    return urls | {each.settings.name: each.url() for each in app.listeners.each[1:]}


async def serve(settings: Settings, file: str | None, load: Callable[[], Settings]) -> None:
    """Run a broker until a signal or a failure of its store, which is raised: StoreError.

    The settings come from `file`, if from any; `load` reads them once more.
    """
    configure_logging(settings.log.format, settings.log.level, shard=settings.shard_name)
    log = structlog.get_logger("broker")
    app = App(settings)
    app.configuration = Reloading(app, load)
    loop = asyncio.get_running_loop()
    signals = Signals(app, load, on_terminal=sys.stdin is not None and sys.stdin.isatty())
    signals.listen(loop)
    began_s = time.monotonic()
    _tell_start(app, file)
    try:
        heir = await _run(app, signals, log)
    except LeadershipError as error:
        if signals.is_told:
            raise StoreError(str(error)) from None  # it is not to stand by in place of its end
        raise
    write_line(log, STOPPED, reason=signals.reason, up_s=round(time.monotonic() - began_s, 1))
    if heir:
        raise LeadershipError(f"{heir} takes over")


async def _run(app: App, signals: Signals, log: structlog.typing.FilteringBoundLogger) -> str:
    """Run `app` until it has ended; return the name of the member that takes over, if one is to.

    It is empty if this process is to end, and not to stand by.
    """
    settings = app.settings
    if not app.store.commits_at_once:
        sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.collect()
    if settings.ha.enabled and not await stand_by(app, signals, log):
        return ""
    # objects that a start makes stay: the garbage collector skips them, then and later
    gc.disable()
    await app.start()
    gc.freeze()
    gc.enable()
    write_line(log, READY, url=app.url(), **other_urls(app))
    say(ready_line(app))
    signals.up()
    if app.group is not None:
        app.group.hand_over = signals.hand_over
    trimmer = Trimmer(app.stats)
    trimmer.start()
    heads = HeadLog(app.container.audit, lambda head: write_line(log, AUDIT_HEAD, head=head))
    heads.start()
    await app.ended.wait()
    trimmer.stop()
    heads.stop()
    _tell_stop(app, signals.reason)
    heir = "" if app.group is None else app.group.heir
    await app.stop(HAND_OVER_S if heir else STOP_TIMEOUT_S)
    heads.report()
    is_anew = bool(heir) if app.failure is None else isinstance(app.failure, LeadershipError)
    stands_by = is_anew and not signals.is_told
    signals.release(asyncio.get_running_loop(), ignore=not stands_by)
    if app.failure is not None:
        raise app.failure
    return heir if stands_by else ""


async def stand_by(app: App, signals: Signals, log: structlog.typing.FilteringBoundLogger) -> bool:
    """Wait until this broker leads its group; return False if a signal has ended it before.

    Raise StoreError if it can never lead.
    """

    def told(leader: str, obstacle: str) -> None:
        if leader:
            write_line(log, STANDING_BY, leader=leader)
            say(f"standby of {leader}")
            signals.standing_by(leader)
        if obstacle:
            write_line(log, NOT_LEADING, reason=obstacle)

    gc.freeze()  # there are none but those that stay; it may stand by for years
    # a broker without a group is spared the module
    from broker.standing_by import StandingBy

    assert app.group is not None
    waiting = asyncio.ensure_future(StandingBy(app, app.group, told).lead())
    ended = asyncio.ensure_future(app.ended.wait())
    await asyncio.wait((waiting, ended), return_when=asyncio.FIRST_COMPLETED)
    ended.cancel()
    if waiting.done():
        await waiting
        return True
    waiting.cancel()
    with suppress(asyncio.CancelledError):
        await waiting
    await app.stop()
    return False


def _tell_start(app: App, file: str | None) -> None:
    write_line(
        structlog.get_logger("broker"),
        STARTING,
        version=__version__,
        build=COMPILED if is_compiled() else SLOWER,
        python=platform.python_version(),
        store=app.store.name,
        settings=file or "no file",
        pid=os.getpid(),
    )


def _tell_stop(app: App, reason: str) -> None:
    log = structlog.get_logger("broker")
    connections = app.container.peer_count()
    if app.failure is None:
        write_line(log, STOPPING, reason=reason, connections=connections)
    else:
        write_line(log, STORE_FAILED, reason=str(app.failure))
