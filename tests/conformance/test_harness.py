"""The harness itself: its verdicts on brokers that break rules; no case passes by chance.

The brokers here are scripts: they send given bytes, whatever they receive.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

import pytest

from broker.amqp.frames import AMQP_HEADER, EMPTY_FRAME, SASL_HEADER
from broker.amqp.performatives import Begin, Close, End, Error, Flow, Open
from broker.amqp.sasl_frames import SaslMechanisms, SaslOutcome
from broker.amqp.types import Described, Map, Symbol, UInt, ULong
from tests.conformance import harness
from tests.conformance.conversation import Conversation
from tests.conformance.frames import Disposition, Transfer, described, frame, raw_frame, sasl_frame
from tests.conformance.harness import Case, all_cases, chosen, judge
from tests.conformance.verdict import Failed, Kind, NotApplicable, Options, Verdict, require
from tests.conformance.words import in_words

WELCOME: Final = (
    SASL_HEADER
    + sasl_frame(SaslMechanisms(["ANONYMOUS"]))
    + sasl_frame(SaslOutcome(0))
    + AMQP_HEADER
    + frame(Open(container_id="script"))
)
BEGUN: Final = frame(
    Begin(remote_channel=0, next_outgoing_id=0, incoming_window=1, outgoing_window=1)
)
REFUSAL: Final = frame(Close(error=Error(condition="amqp:not-allowed")))


class Script(asyncio.Protocol):
    """Sends `data` to each client and reads nothing; then hangs up, unless told not to."""

    def __init__(self, data: bytes, *, hang_up: bool) -> None:
        self._data = data
        self._hang_up = hang_up

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._data)
        if self._hang_up:
            transport.write_eof()


@asynccontextmanager
async def scripted(data: bytes, *, hang_up: bool = True) -> AsyncIterator[Options]:
    """Run a server that sends `data`; yield the options to reach it."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Script(data, hang_up=hang_up), "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield Options("127.0.0.1", port, timeout_s=0.2)
    # let the server's end of the connection notice that the client is gone
    await asyncio.sleep(0)


def tried(run: Callable[[Conversation], object]) -> Case:
    return Case("tried", "core", "2.4", "It is tried.", run)  # type: ignore[arg-type]


async def opened(peer: Conversation) -> None:
    await peer.open()


async def begun(peer: Conversation) -> None:
    await peer.open()
    await peer.begin()


async def closed(peer: Conversation) -> None:
    await peer.open()
    await peer.expect_closed("amqp:not-allowed")


async def refused(peer: Conversation) -> None:
    await peer.open()
    await peer.expect_error()


async def in_silence(peer: Conversation) -> None:
    await begun(peer)
    await peer.expect_nothing()


NOTHING: Final = frame(
    Begin(remote_channel=65535, next_outgoing_id=0, incoming_window=1, outgoing_window=1), 1
) + frame(End(), 1)
FLOW: Final = frame(Flow(incoming_window=1, next_outgoing_id=0, outgoing_window=1))

VERDICTS = [
    pytest.param(opened, WELCOME, "", id="what is expected comes"),
    pytest.param(begun, WELCOME + EMPTY_FRAME + FLOW + BEGUN, "", id="flows may come before it"),
    pytest.param(begun, WELCOME + REFUSAL, "amqp:not-allowed", id="another frame comes"),
    pytest.param(begun, WELCOME, "end of the stream", id="nothing more comes"),
    pytest.param(begun, WELCOME + b"\0\0\0\x07", "end of the stream", id="half a frame comes"),
    pytest.param(begun, WELCOME + b"\0\0\0\x07????", "cannot begin one", id="a lie comes"),
    pytest.param(
        begun, WELCOME + raw_frame(b"\x00\x53\x11\xa1"), "decode-error", id="a bad frame comes"
    ),
    pytest.param(begun, WELCOME + raw_frame(b"\x00\x53\xaa\x45"), "0xaa", id="no performative"),
    pytest.param(closed, WELCOME + REFUSAL, "", id="a close with the condition"),
    pytest.param(closed, WELCOME + frame(Close()), "close()", id="a close without an error"),
    pytest.param(
        closed,
        WELCOME + frame(Close(error=Error(condition="amqp:internal-error"))),
        "internal-error",
        id="a close with another condition",
    ),
    pytest.param(closed, WELCOME + REFUSAL + FLOW, "flow", id="a frame behind close"),
    pytest.param(refused, WELCOME + frame(End()), "end()", id="an end without an error"),
    pytest.param(in_silence, WELCOME + BEGUN + FLOW + NOTHING, "", id="nothing but flows"),
    pytest.param(
        in_silence,
        WELCOME + BEGUN + frame(Disposition(first=0, state=None)) + NOTHING,
        "disposition",
        id="something in place of nothing",
    ),
]


@pytest.mark.parametrize(("run", "data", "got"), VERDICTS)
async def test_a_verdict(run: Callable[[Conversation], object], data: bytes, got: str) -> None:
    async with scripted(data) as options:
        result = await judge(tried(run), options)
    assert result.verdict is (Verdict.FAILED if got else Verdict.PASSED)
    assert got in result.got
    assert len(result.conversation) > 5


async def test_silence_fails_a_case() -> None:
    async with scripted(WELCOME, hang_up=False) as options:
        result = await judge(tried(begun), options)
    assert (result.verdict, result.got) == (Verdict.FAILED, "nothing for 0.2 s")


async def test_a_case_that_does_not_apply_says_why() -> None:
    async def run(peer: Conversation) -> None:
        assert peer.missing_address

    async with scripted(b"") as options:
        result = await judge(tried(run), options)
    assert result.verdict is Verdict.NOT_APPLICABLE
    assert "--missing-address" in result.reason
    assert result.kind is Kind.OPTION_MISSING


STRICT: Final = [
    pytest.param(Kind.IGNORED, False, Verdict.NOT_APPLICABLE, id="ignored"),
    pytest.param(Kind.IGNORED, True, Verdict.FAILED, id="ignored, with strict_jms"),
    pytest.param(Kind.NOT_OFFERED, True, Verdict.NOT_APPLICABLE, id="not offered"),
    pytest.param(Kind.DID_NOT_HAPPEN, True, Verdict.NOT_APPLICABLE, id="did not happen"),
]


@pytest.mark.parametrize(("kind", "strict", "verdict"), STRICT)
async def test_what_is_ignored_fails_where_strict_jms_asks(
    kind: Kind, strict: bool, verdict: Verdict
) -> None:
    async def run(_: Conversation) -> None:
        raise NotApplicable("no notice is taken of it", kind)

    async with scripted(b"") as options:
        result = await judge(tried(run), replace(options, strict_jms=strict))
    failed = verdict is Verdict.FAILED
    assert (result.verdict, result.kind) == (verdict, None if failed else kind)
    assert "no notice is taken of it" in (result.got if failed else result.reason)


async def test_a_bug_of_the_harness_is_no_pass() -> None:
    async def run(_: Conversation) -> None:
        raise KeyError("oops")

    async with scripted(b"") as options:
        result = await judge(tried(run), options)
    assert result.verdict is Verdict.FAILED
    assert "oops" in result.got


async def test_a_case_without_an_end_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(_: Conversation) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(harness, "CASE_LIMIT_S", 0.2)
    async with scripted(b"", hang_up=False) as options:
        result = await judge(tried(run), options)
    assert (result.verdict, result.expected) == (Verdict.FAILED, "an end within 0.2 s")
    assert result.got == "the case took longer than 0.2 s"


async def test_a_connection_that_times_out_is_no_long_case() -> None:
    async def run(_: Conversation) -> None:
        raise TimeoutError(errno.ETIMEDOUT, "Connection timed out")

    async with scripted(b"") as options:
        result = await judge(tried(run), options)
    assert result.expected == "a connection"
    assert "Connection timed out" in result.got


async def test_nobody_there_is_no_pass() -> None:
    async with scripted(b"") as options:
        pass
    assert (await judge(tried(opened), options)).verdict is Verdict.FAILED


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: f"{case.source}-{case.name}")
async def test_no_case_passes_on_a_server_that_hangs_up(case: Case) -> None:
    async with scripted(b"") as options:
        result = await judge(case, options)
    assert result.verdict is not Verdict.PASSED


def test_requirements_are_told_in_words() -> None:
    require([0], "a list that is not empty", [])
    with pytest.raises(Failed) as caught:
        require([], "a list that is not empty", [])
    assert (caught.value.expected, caught.value.got) == ("a list that is not empty", "[]")


CHOICES = [
    pytest.param([], [], "abcde", id="all"),
    pytest.param(["jms:2"], [], "e", id="a clause of another source"),
    pytest.param(["jms:"], [], "e", id="all of another source"),
    pytest.param(["2.6"], [], "ab", id="a clause with those below it"),
    pytest.param(["2.6.3"], [], "b", id="a clause"),
    pytest.param(["2"], [], "abc", id="a part"),
    pytest.param(["7"], [], "", id="no clause"),
    pytest.param([], ["b"], "b", id="a name"),
    pytest.param(["2.60", "jms:"], [], "ce", id="several clauses"),
    pytest.param(["2.6"], ["d", "b"], "abd", id="clauses and names"),
]


@pytest.mark.parametrize(("clauses", "names", "expected"), CHOICES)
def test_cases_are_chosen(clauses: list[str], names: list[str], expected: str) -> None:
    numbers = {"a": "2.6", "b": "2.6.3", "c": "2.60", "d": "3.2"}
    cases = [Case(key, "core", value, "", opened) for key, value in numbers.items()]
    cases.append(Case("e", "jms", "2.6.1", "", opened))
    assert "".join(each.name for each in chosen(cases, clauses, names)) == expected


LINES = [
    pytest.param(AMQP_HEADER, "header AMQP 0.1.0.0", id="a header"),
    pytest.param(EMPTY_FRAME, "channel 0 empty frame", id="an empty frame"),
    pytest.param(frame(End(), 3), "channel 3 end()", id="no fields"),
    pytest.param(
        frame(Transfer(handle=7, tag=b"t", payload=b"xyz")),
        "channel 0 transfer(handle=7, delivery-id=0, delivery-tag=b't', message-format=0)"
        " + 3 bytes",
        id="a payload",
    ),
    pytest.param(raw_frame(b"\xff"), "bytes 000000090200000" + "0ff", id="garbage"),
    pytest.param(b"\x01\x02", "bytes 0102", id="less than a frame"),
]


@pytest.mark.parametrize(("data", "line"), LINES)
def test_a_frame_is_shown_in_a_line(data: bytes, line: str) -> None:
    assert described(data) == line


WORDS = [
    pytest.param(None, "null", id="null"),
    pytest.param(True, "true", id="boolean"),
    pytest.param(1, "1", id="long"),
    pytest.param(Symbol("a\n"), r"'a\n'", id="a symbol that cannot be printed"),
    pytest.param(Map([(Symbol("key"), [UInt(1), None])]), "{key: [1, null]}", id="nested"),
    pytest.param("x" * 200, "'" + "x" * 79 + "…", id="long text"),
    pytest.param(Described(ULong(0x24), []), "accepted", id="an outcome"),
    pytest.param(Described(ULong(0xFFFF), [1]), "described 65535 [1]", id="unknown"),
    pytest.param(
        Described(ULong(0x41), [Symbol("PLAIN"), b"\0user\0secret"]),
        "sasl-init(mechanism=PLAIN, …)",
        id="a password is not shown",
    ),
]


@pytest.mark.parametrize(("value", "text"), WORDS)
def test_a_value_in_words(value: object, text: str) -> None:
    assert in_words(value) == text


def test_not_applicable_has_a_reason() -> None:
    assert str(NotApplicable("no such thing", Kind.DID_NOT_HAPPEN)) == "no such thing"
