"""`jms-broker serve` with shards: start a process for each, watch them, and stop them.

This process serves no client. If it is killed, its shards notice the end of their standard input,
and stop (`SUPERVISED`).
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import structlog

from broker.event_within import is_set_within
from broker.log_events import SHARD_ENDED, SHARD_NOT_STARTED, LogEvent
from broker.log_lines import configure_logging, say, write_line
from broker.service_notifier import VARIABLE, ServiceNotifier
from broker.shard_settings import SUPERVISED

if TYPE_CHECKING:
    from broker.settings import Settings

PAUSE_S: Final = 0.1
"""Seconds until a shard that has ended by itself is started again, for the first time."""

PAUSE_MAX_S: Final = 5.0
"""Maximum of these seconds, which double while a shard ends again and again."""

STEADY_S: Final = 30.0
"""Seconds after whose life a shard starts again as after its first end."""

READY: Final = ("ready ", "standby of ")
"""Beginnings of the lines by which a shard tells that its start is complete."""

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

FAILED: Final = 1
"""The status of this process if a signal has ended a shard, or no process could be made."""


class RestartPause:
    """The pauses between the end of a shard's process and the start of the next."""

    def __init__(self) -> None:
        self._next_s = PAUSE_S

    def after(self, life_s: float) -> float:
        """Return the seconds to wait after a process that has lived for `life_s`."""
        pause_s = PAUSE_S if life_s >= STEADY_S else self._next_s
        self._next_s = min(2 * pause_s, PAUSE_MAX_S)
        return pause_s


class ShardProcess:
    """The process of one shard; `is_up` once its start is complete, `was_up` once one was.

    `is_told` is called each time that the shard is up.
    """

    def __init__(self, name: str, is_told: Callable[[], None]) -> None:
        self.name: Final = name
        self.is_up = False
        self.was_up = False
        self._is_told: Final = is_told
        self._process: asyncio.subprocess.Process | None = None
        self._must_reload = False
        self._stopping: Final = asyncio.Event()

    async def keep(self) -> int:
        """Run the shard until `stop`, starting it again if it ends; return its last status.

        Return at once if it has failed to start for the first time: its settings or its store are
        wrong. A process that a signal has ended says nothing about them.
        """
        pause = RestartPause()
        while True:
            began_s = time.monotonic()
            status, reason = await self._ended()
            if self._stopping.is_set():
                # a broker handles these signals: a process that dies of one had not begun to serve
                return 0 if -status in STOP_SIGNALS else status
            if status > 0 and not self.was_up:
                _tell(SHARD_NOT_STARTED, shard=self.name, status=reason)
                return status
            pause_s = pause.after(time.monotonic() - began_s)
            _tell(SHARD_ENDED, shard=self.name, status=reason, pause_s=pause_s)
            if await is_set_within(self._stopping, pause_s):
                return 0

    async def _ended(self) -> tuple[int, str]:
        """Run one process of the shard; return its status, and that for people."""
        try:
            status = await self._run()
        except OSError as error:  # there is no memory for another process, for instance
            return FAILED, f"no process: {error.strerror}"
        return status, str(status) if status >= 0 else f"signal: {signal.strsignal(-status)}"

    async def _run(self) -> int:
        """Run one process of the shard; return its status, negative if a signal has ended it."""
        environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
        process = self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            *sys.orig_argv[1:],
            "--shard",
            self.name,
            env={**environment, SUPERVISED: "1"},
            stdin=asyncio.subprocess.PIPE,  # nothing is written to it
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,  # ^C on a terminal reaches this process alone
        )
        if self._stopping.is_set():  # meanwhile
            self._signal(signal.SIGTERM)
        assert process.stdout is not None
        async for line in process.stdout:
            text = line.decode(errors="replace")
            say(f"shard {self.name}: {text.rstrip()}")
            if text.startswith(READY):
                self._up()
        self.is_up = False
        return await process.wait()

    def _up(self) -> None:
        self.is_up = self.was_up = True
        if self._must_reload:
            self.reload()
        self._is_told()

    def stop(self, number: int) -> None:
        """Send a signal that ends the shard, which is not started again."""
        self._stopping.set()
        self._signal(number)

    def reload(self) -> None:
        """Have the shard read its settings again; one that is starting does it when it is up."""
        self._must_reload = not self.is_up
        if self.is_up:
            self._signal(signal.SIGHUP)

    def _signal(self, number: int) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):  # it has just ended
                self._process.send_signal(number)


class Supervisor:
    """The processes of all shards."""

    def __init__(self, names: Sequence[str], notifier: ServiceNotifier) -> None:
        self._shards: Final = [ShardProcess(name, self._one_is_up) for name in names]
        self._notifier: Final = notifier
        self._is_ready = False

    async def run(self) -> int:
        """Run the shards until a signal, or until one cannot start; return the exit status."""
        self._listen(asyncio.get_running_loop())
        keeping = [asyncio.ensure_future(each.keep()) for each in self._shards]
        await asyncio.wait(keeping, return_when=asyncio.FIRST_COMPLETED)
        failed = [each.result() for each in keeping if each.done() and each.result()]
        if failed:
            self._stop(signal.SIGTERM)
        statuses = failed + await asyncio.gather(*keeping)
        bad = next((status for status in statuses if status), 0)
        return bad if bad >= 0 else FAILED

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, self._stop, number)
        on_terminal = sys.stdin is not None and sys.stdin.isatty()
        if on_terminal:  # the terminal was closed
            loop.add_signal_handler(signal.SIGHUP, self._stop, signal.SIGTERM)
        else:
            loop.add_signal_handler(signal.SIGHUP, self._reload)

    def _stop(self, number: int) -> None:
        """Stop all shards; a second signal ends them at once, as it does a broker."""
        self._notifier.stopping("stopping all shards")
        for shard in self._shards:
            shard.stop(number)

    def _reload(self) -> None:
        self._notifier.reloading()
        for shard in self._shards:
            shard.reload()
        self._notifier.ready(self._status())

    def _one_is_up(self) -> None:
        if not self._is_ready and all(shard.was_up for shard in self._shards):
            self._is_ready = True
            names = ",".join(shard.name for shard in self._shards)
            say(f"ready shards={names} pid={os.getpid()}")
            self._notifier.ready(self._status())

    def _status(self) -> str:
        return f"{len(self._shards)} shards"


def supervise(settings: Settings) -> int:
    """Run all shards of `settings` until a signal, or until one cannot start.

    Return the exit status: 0 if all of them have ended with 0.
    """
    configure_logging(settings.log.format, settings.log.level)
    names = [each.name for each in settings.shard]
    return asyncio.run(Supervisor(names, ServiceNotifier()).run())


def _tell(event: LogEvent, **facts: object) -> None:
    write_line(structlog.get_logger("broker"), event, **facts)
