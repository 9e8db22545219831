"""A run whose broker dies: it is said, and the run goes on if the broker comes back."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from tests.conformance import restart as restarts
from tests.conformance import running
from tests.conformance.asked import Asked
from tests.conformance.command import exit_status, judge_chosen
from tests.conformance.conversation import Conversation
from tests.conformance.harness import Case, Result
from tests.conformance.jms_api.catalogue import jms_rules
from tests.conformance.jms_api.runner import JmsRun
from tests.conformance.progress import ProgressLines, Watcher
from tests.conformance.restart import RestartError, restart
from tests.conformance.running import judge_all
from tests.conformance.test_harness import WELCOME, Script, begun, opened, scripted
from tests.conformance.verdict import Options, Verdict
from tests.interop.restarted_broker import ASKING


class Mortal:
    """A scripted broker at a port of its own, which cases can end."""

    def __init__(self) -> None:
        self.port = 0
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.get_running_loop().create_server(
            lambda: Script(WELCOME, hang_up=True), "127.0.0.1", self.port, reuse_address=True
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def die(self) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    async def asked(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Start again for a program ASKING."""
        await self.start()
        writer.write(b"!")
        writer.close()


class Heard(Watcher):
    """The words of a run."""

    def __init__(self) -> None:
        self.words: Final[list[str]] = []

    def judged(self, result: Result) -> None:
        self.words.append(f"{result.case.name} {result.verdict.value}")

    def said(self, words: str) -> None:
        self.words.append(words)


@asynccontextmanager
async def mortal(*, can_restart: bool) -> AsyncIterator[tuple[Mortal, Options]]:
    broker = Mortal()
    await broker.start()
    control = await asyncio.start_server(broker.asked, "127.0.0.1", 0)
    port = control.sockets[0].getsockname()[1]
    command = f"{sys.executable} -c {shlex.quote(ASKING.format(port=port))}"
    options = Options("127.0.0.1", broker.port, timeout_s=0.5)
    async with control:
        yield broker, replace(options, restart=command if can_restart else None)
    await broker.die()
    await asyncio.sleep(0)


def named(name: str, run: Callable[[Conversation], Awaitable[None]]) -> Case:
    return Case(name, "core", "2.4", "It is tried.", run)


def killing(broker: Mortal, *, passes: bool) -> Case:
    """Return a case in which the broker dies: after its verdict, if it passes."""

    async def run(peer: Conversation) -> None:
        await peer.open()
        await broker.die()
        if not passes:
            await peer.begin()

    return named("deadly", run)


@pytest.mark.parametrize("passes", [False, True], ids=["in a case", "after a verdict"])
async def test_a_broker_that_died_is_restarted(passes: bool) -> None:
    async with mortal(can_restart=True) as (broker, options):
        heard = Heard()
        cases = [named("before", opened), killing(broker, passes=passes), named("after", opened)]
        results = (await judge_all(cases, options, heard)).results
    assert [each.verdict.value for each in results] == ["passed", "failed", "passed"]
    assert [each.died for each in results] == [False, True, False]
    assert results[1].expected == (running.ALIVE if passes else "begin with remote_channel=0")
    assert heard.words[2:4] == [
        "the broker died in deadly",
        "the broker was restarted, the run goes on",
    ]


@pytest.mark.parametrize("passes", [False, True], ids=["in a case", "after a verdict"])
async def test_without_a_restart_the_other_cases_are_not_run(
    passes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "BACK_S", 0.2)
    async with mortal(can_restart=False) as (broker, options):
        heard = Heard()
        others = [named("second", opened), named("third", opened)]
        results = (
            await judge_all([killing(broker, passes=passes), *others], options, heard)
        ).results
        await broker.start()
    assert [each.verdict.value for each in results] == ["failed", "not run", "not run"]
    assert results[2].reason == "the broker died in deadly, and did not come back"
    assert "--restart" in heard.words[-1]


@pytest.mark.parametrize("passes", [False, True], ids=["in the case", "after its verdict"])
async def test_the_rules_of_jms_are_not_run_after_a_death_in_the_last_case(
    passes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exit status says so too, although every case before was run."""
    monkeypatch.setattr(running, "BACK_S", 0.2)
    rules = jms_rules()[:2]
    async with mortal(can_restart=False) as (broker, options):
        cases = [named("before", opened), killing(broker, passes=passes)]
        # a command that would fail each rule if it were run
        asked = Asked(restart="restart --password secret")
        report = await judge_chosen(asked, (cases, rules), options, JmsRun(("false",)))
        await broker.start()
    assert [each.verdict.value for each in report.results] == [
        *("passed", "failed", "not run", "not run")
    ]
    assert report.results[1].died
    assert exit_status(report.results) == 4
    # the command may hold a password
    assert report.options == {"restart": True}


async def test_a_broker_that_is_restarted_after_the_last_case_is_alive() -> None:
    async with mortal(can_restart=True) as (broker, options):
        judged = await judge_all([killing(broker, passes=True)], options)
    assert judged.killer == ""
    assert judged.results[0].died


async def test_a_supervisor_may_bring_the_broker_back() -> None:
    async with mortal(can_restart=False) as (broker, options):
        heard = Heard()

        async def dies(peer: Conversation) -> None:
            await peer.open()
            await broker.die()
            asyncio.get_running_loop().call_later(0.2, lambda: tasks.append(back()))
            await peer.begin()

        def back() -> asyncio.Task[None]:
            return asyncio.create_task(broker.start())

        tasks: list[asyncio.Task[None]] = []
        cases = [named("deadly", dies), named("after", opened)]
        results = (await judge_all(cases, options, heard)).results
    assert [each.verdict.value for each in results] == ["failed", "passed"]
    assert "the broker is back, the run goes on" in heard.words


async def test_a_case_that_fails_is_no_dead_broker() -> None:
    async with mortal(can_restart=True) as (_, options):
        heard = Heard()
        results = (await judge_all([named("fails", begun)], options, heard)).results
    assert (results[0].verdict, results[0].died) == (Verdict.FAILED, False)
    assert heard.words == ["fails failed"]


async def test_silence_from_the_beginning_is_no_death() -> None:
    """A broker without SASL hangs up on each case; the cases tell that, not the run."""
    async with scripted(b"") as options:
        cases = [named("first", opened), named("second", opened)]
        results = (await judge_all(cases, options)).results
    assert [each.verdict for each in results] == [Verdict.FAILED, Verdict.FAILED]
    assert [each.died for each in results] == [False, False]


COMMANDS: Final = [
    pytest.param("echo no such service; exit 3", "status 3: no such service", id="it fails"),
    pytest.param("exec tail -f /dev/null", "did not end within", id="it does not end"),
    pytest.param("true", "the broker does not answer", id="the broker stays away"),
]


@pytest.mark.parametrize(("command", "told"), COMMANDS)
async def test_a_restart_that_fails_says_why(
    command: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restarts, "COMMAND_S", 0.5)
    monkeypatch.setattr(restarts, "READY_S", 0.3)
    async with mortal(can_restart=False) as (broker, options):
        await broker.die()
        with pytest.raises(RestartError, match=told):
            await restart(replace(options, restart=command))
        await broker.start()


async def test_a_restart_that_is_cancelled_ends_its_command(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    async with mortal(can_restart=False) as (_, options):
        restarting = asyncio.create_task(
            restart(replace(options, restart=f"echo $$ > {pipe}; exec tail -f /dev/null"))
        )
        pid = int(await asyncio.to_thread(pipe.read_text))
        restarting.cancel()
        await asyncio.wait([restarting])
    assert restarting.cancelled()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_case_that_restarts_the_broker_needs_the_option() -> None:
    async def restarting(peer: Conversation) -> None:
        await peer.open()
        await peer.restart_broker()
        async with peer.another() as after:
            await after.open()

    async with mortal(can_restart=False) as (_, options):
        cases = [named("restarts", restarting)]
        (without,) = (await judge_all(cases, options)).results
        (failed,) = (await judge_all(cases, replace(options, restart="exit 1"))).results
    assert without.reason.startswith("needs --restart")
    assert (failed.verdict, failed.got) == (Verdict.FAILED, "--restart ended with status 1: ")


def test_progress_without_a_terminal_is_a_line_from_time_to_time(
    capsys: pytest.CaptureFixture[str],
) -> None:
    results = [Result(named(name, opened), Verdict.PASSED, 0.1, []) for name in "abc"]
    rare, often = ProgressLines(sys.stdout, 3), ProgressLines(sys.stdout, 3, interval_s=0)
    for result in results:
        rare.judged(result)
    assert capsys.readouterr().out == ""
    for result in results:
        often.judged(result)
    assert capsys.readouterr().out.splitlines()[-1] == "3 of 3 cases: 3 passed; last c"
