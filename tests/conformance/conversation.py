"""A client on a socket that sends the frames of a case, and reads and checks the answers."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeVar

from broker.amqp.errors import Fault
from broker.amqp.frames import AMQP_HEADER, HEAD_SIZE, SASL_HEADER
from broker.amqp.performatives import Attach, Begin, Close, Detach, End, Error, Flow, Open
from broker.amqp.sasl_frames import (
    SASL_OK,
    SaslChallenge,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
)

from .addresses import CaseAddresses
from .announced import check_frames
from .frames import (
    Body,
    Empty,
    Frame,
    Header,
    described,
    frame,
    raw_frame,
    read_frame,
    sasl_frame,
)
from .logins import CHALLENGES_MAX, Login, check_checked, login_of
from .restart import RestartError, answering_last_close, restart
from .session import Session
from .transport import Transport, opened
from .verdict import RESET, Failed, Kind, NotApplicable, Options

B = TypeVar("B", bound=Body)

FRAMES_SHOWN: Final = 200
"""Maximum lines of a conversation in a report."""

CLOSING_S: Final = 1.0
"""Maximum seconds for the broker to read the last data before the connection is closed."""

FRAME_SIZE: Final = 64 * 1024
"""The max-frame-size of our open unless a case gives another one."""


class Conversation(CaseAddresses):
    """A case's connection to the broker under test, and the lines of its frames for the report.

    Frames are read one by one, when the case asks for one. `receive` records in each session and
    link what they must know of it (credit, transfer ids), so that the case need not.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        options: Options,
        address: str,
        lines: list[str],
        name: str = "",
        unique: str = "",
    ) -> None:
        super().__init__(options, address, unique=unique)
        self.sessions: Final[dict[int, Session]] = {}
        self.remote_open: Open | None = None
        self.goes_beyond_limits = False
        self._transport: Final = transport
        self._lines: Final = lines
        self._name: Final = name
        self._count = 0

    # -- further connections

    @asynccontextmanager
    async def another(self) -> AsyncIterator[Conversation]:
        """Open a second socket for the same case; AMQP is not opened on it yet."""
        self._count += 1
        async with connected(
            self.options,
            address=self.address,
            unique=self._unique,
            lines=self._lines,
            name=f"{self._name}{'abcdefghij'[self._count % 10]} ",
        ) as other:
            yield other

    def check_can_restart(self) -> None:
        """Raise NotApplicable if the user gave no command that restarts the broker."""
        if self.options.restart is None:
            raise NotApplicable(
                "needs --restart: a command that restarts the broker", Kind.OPTION_MISSING
            )

    async def restart_broker(self) -> None:
        """Restart the broker by the user's command; the connections of the case are lost."""
        self.check_can_restart()
        if self.remote_open is None:
            self.send_eof()  # a broker that stops may wait for a client that has said nothing
        try:
            async with answering_last_close(self):
                await restart(self.options)
        except RestartError as error:
            raise Failed("a broker that is back after its restart", str(error)) from None
        self._lines.append("the broker was restarted")

    # -- out

    def send_bytes(self, data: bytes) -> None:
        """Send `data` as it is; NotApplicable if the broker has announced that it takes less."""
        if not self.goes_beyond_limits:
            check_frames(data, self.remote_open)
        self._note("→", data)
        self._transport.write(data)

    def send(self, *bodies: Body, channel: int = 0) -> None:
        """Send a frame for each of `bodies`."""
        for body in bodies:
            self.send_bytes(frame(body, channel))

    def send_sasl(self, body: Body) -> None:
        self.send_bytes(sasl_frame(body))

    def send_raw(self, body: bytes, channel: int = 0) -> None:
        """Send a frame whose body is any bytes, well-formed or not."""
        self.send_bytes(raw_frame(body, channel))

    async def drain(self) -> None:
        """Hand the data sent so far to the network, so that it does not travel with later data."""
        await self._transport.drain()
        await asyncio.sleep(0)

    def send_eof(self) -> None:
        """Close our half of the socket; with TLS or WebSocket, which have no halves, all of it."""
        self._lines.append(f"{self._name}→ end of stream")
        self._transport.end()

    async def lose_socket(self) -> None:
        """End the stream without a close; wait for the broker's end, which frames may precede."""
        self.send_eof()
        try:
            while True:
                await self.receive()
        except Failed as failed:
            if not failed.is_end:
                raise Failed("the end of the stream, as ours has ended", failed.got) from None

    # -- in

    async def receive(self) -> Frame:
        """Return the next protocol header or frame, except empty frames."""
        while True:
            came = await self.receive_any()
            if not isinstance(came.body, Empty):
                return came

    async def receive_any(self, *, timeout_s: float | None = None) -> Frame:
        """Return the next protocol header or frame, including empty frames.

        Raise Failed if none arrives in time, the stream ends, or the frame is malformed.
        """
        head = await self._read(HEAD_SIZE, timeout_s)
        if head[:4] == b"AMQP":
            self._note("←", head)
            return Frame(0, Header(head), head)
        size = int.from_bytes(head[:4])
        if size < HEAD_SIZE or size > 2**27:
            self._note("←", head)
            raise Failed("a frame", f"the bytes {head.hex()}, which cannot begin one")
        raw = head + await self._read(size - HEAD_SIZE, timeout_s)
        self._note("←", raw)
        try:
            came = read_frame(raw)
        except (Fault, IndexError) as fault:
            raise Failed("a well-formed frame", f"{described(raw)}: {fault}") from None
        self._learn(came)
        return came

    async def _read(self, size: int, timeout_s: float | None) -> bytes:
        patience_s = self.options.timeout_s if timeout_s is None else timeout_s
        try:
            async with asyncio.timeout(patience_s):
                return await self._transport.read(size)
        except TimeoutError:
            raise Failed("a frame", f"nothing for {patience_s:g} s") from None
        except asyncio.IncompleteReadError as error:
            self._lines.append(f"{self._name}← end of stream")
            kept = f" after {error.partial.hex()}" if error.partial else ""
            raise Failed("a frame", f"the end of the stream{kept}") from None
        except (ConnectionError, ssl.SSLError) as error:
            self._lines.append(f"{self._name}← {type(error).__name__}")
            raise Failed("a frame", RESET) from None

    def _learn(self, came: Frame) -> None:
        """Pass a frame to the session to which it belongs."""
        if isinstance(came.body, Begin):
            session = self.sessions.get(int(came.body.remote_channel))
            if session is not None:
                session.began(came.channel, came.body)
            return
        for session in self.sessions.values():
            if session.remote_channel == came.channel:
                session.learn(came.body)

    def _note(self, direction: str, data: bytes) -> None:
        if len(self._lines) < FRAMES_SHOWN:
            self._lines.append(f"{self._name}{direction} {described(data)}")
        elif len(self._lines) == FRAMES_SHOWN:
            self._lines.append("… and more")

    # -- what must come next

    async def expect(
        self, kind: type[B], *, skip: tuple[type[Body], ...] = (Flow,), **wanted: object
    ) -> B:
        """Return the next frame, which must be of `kind` with the attributes `wanted`.

        A callable in `wanted` is a test of the attribute. Frames of `skip` may precede it: a peer
        may send a flow at any time.
        """
        expected = kind.__name__.lower()
        if wanted:
            expected += " with " + ", ".join(
                f"{name}={_told(each)}" for name, each in wanted.items()
            )
        try:
            came = await self.receive()
            while isinstance(came.body, skip) and not isinstance(came.body, kind):
                came = await self.receive()
        except Failed as failed:
            raise Failed(expected, failed.got) from None
        if not isinstance(came.body, kind):
            raise Failed(expected, described(came.raw))
        for name, each in wanted.items():
            held = getattr(came.body, name)
            if not (each(held) if callable(each) else held == each):
                raise Failed(expected, described(came.raw))
        return came.body

    async def expect_until(self, kind: type[B], fits: Callable[[B], bool] | None = None) -> B:
        """Return the first frame of `kind` that `fits`, and skip others.

        A detach, end or close with an error fails the case.
        """
        expected = kind.__name__.lower()
        while True:
            try:
                came = await self.receive()
            except Failed as failed:
                raise Failed(expected, failed.got) from None
            if isinstance(came.body, kind) and (fits is None or fits(came.body)):
                return came.body
            if isinstance(came.body, Detach | End | Close) and came.body.error is not None:
                raise Failed(expected, described(came.raw))

    async def expect_header(self, header: bytes) -> None:
        """Check that the next eight bytes are this protocol header."""
        await self.expect(Header, data=header)

    async def expect_error(self, *conditions: str) -> Detach | End | Close:
        """Return a detach, end or close with one of `conditions`, or any error if none is given.

        For rules whose scope the specification leaves to the implementation. A close is answered.
        """
        expected = f"detach, end or close with {' or '.join(conditions) or 'an error'}"
        try:
            came = await self.receive()
            while not isinstance(came.body, Detach | End | Close):
                came = await self.receive()
        except Failed as failed:
            raise Failed(expected, failed.got) from None
        _check_error(came.body.error, conditions, expected=expected, got=described(came.raw))
        if isinstance(came.body, Close):
            self._answer_close()
        return came.body

    async def expect_closed(self, *conditions: str, or_eof: bool = False) -> Close | None:
        """Return the next close, which must have one of `conditions` (or any error); skip others.

        It is answered, and then the broker must close the socket. With `or_eof` the end of the
        stream alone is enough, and None is returned.
        """
        expected = f"close with {' or '.join(conditions) or 'an error'}"
        try:
            came = await self.receive()
            while not isinstance(came.body, Close):
                came = await self.receive()
        except Failed as failed:
            if or_eof and failed.is_end:
                return None
            raise Failed(expected, failed.got) from None
        _check_error(came.body.error, conditions, expected=expected, got=described(came.raw))
        self._answer_close()
        await self.expect_eof()
        return came.body

    def _answer_close(self) -> None:
        self.send(Close())

    async def expect_eof(self) -> None:
        """Check that the broker closes the socket, and sends no frame before it does."""
        try:
            came = await self.receive()
        except Failed as failed:
            if failed.is_end:
                return
            raise Failed("the end of the stream", failed.got) from None
        raise Failed("the end of the stream", described(came.raw))

    async def expect_nothing(self, *, but: tuple[type[Body], ...] = (Flow,)) -> None:
        """Check that no frame besides those of `but` precedes the answer to a begin sent now."""
        channel = self._free_channel()
        self.send(Begin(next_outgoing_id=0, incoming_window=0, outgoing_window=0), channel=channel)
        came = await self.receive()
        while not isinstance(came.body, Begin):
            if not isinstance(came.body, but):
                raise Failed("nothing but the answer to a begin", described(came.raw))
            came = await self.receive()
        self.send(End(), channel=channel)
        await self.expect(End, skip=but)

    def _free_channel(self) -> int:
        most = 0xFFFF if self.remote_open is None else int(self.remote_open.channel_max)
        for channel in range(most, -1, -1):
            if channel not in self.sessions:
                return channel
        raise NotApplicable("no channel is free", Kind.DID_NOT_HAPPEN)

    # -- what most cases begin with

    async def open(self, **fields: object) -> Open:
        """Pass the security layer, exchange headers and opens; return the broker's open."""
        await self.login()
        self.send_bytes(AMQP_HEADER)
        self.send(self.our_open(**fields))
        await self.expect_header(AMQP_HEADER)
        self.remote_open = await self.expect(Open)
        return self.remote_open

    def our_open(self, **fields: object) -> Open:
        """Return the open that `open` sends."""
        given = {
            "container_id": self.name(f"client{self._name.strip()}"),
            "hostname": self.options.host,
            "max_frame_size": FRAME_SIZE,
        } | fields
        return Open(**given)  # type: ignore[arg-type]

    async def login(self) -> None:
        """Pass the security layer, as the options say."""
        login = login_of(self.options, await self.mechanisms())
        self.send_sasl(login.init)
        await self.expect_let_in(login)

    async def mechanisms(self) -> list[str]:
        """Exchange the headers of the security layer; return the offered mechanisms."""
        self.send_bytes(SASL_HEADER)
        await self.expect_header(SASL_HEADER)
        return (await self.expect(SaslMechanisms)).mechanisms

    async def expect_outcome(self, login: Login) -> SaslOutcome:
        """Answer the challenges that follow `login.init`; return the outcome.

        Raise TryLaterError if the broker has not checked the login.
        """
        for _ in range(CHALLENGES_MAX + 1):
            came = await self.receive()
            if isinstance(came.body, SaslOutcome):
                check_checked(came.body)
                return came.body
            if not isinstance(came.body, SaslChallenge):
                raise Failed("a challenge or the outcome", described(came.raw))
            self.send_sasl(SaslResponse(login.answer(came.body.challenge)))
        raise Failed(f"the outcome after {CHALLENGES_MAX} challenges at most", "another one")

    async def expect_let_in(self, login: Login) -> None:
        """Answer the challenges that follow `login.init`; the outcome must be ok."""
        outcome = await self.expect_outcome(login)
        if outcome.code != SASL_OK:
            raise Failed("the outcome ok (0)", f"the code {int(outcome.code)}")
        login.check_end(outcome.additional_data)

    async def begin(self, channel: int = 0, **fields: object) -> Session:
        """Begin a session; the broker must answer it."""
        session = self.new_session(channel, **fields)
        await self.expect(Begin, remote_channel=channel)
        return session

    def new_session(self, channel: int = 0, **fields: object) -> Session:
        """Send a begin, without waiting for the answer."""
        session = Session(self, channel, **fields)
        self.sessions[channel] = session
        self.send(session.begin, channel=channel)
        return session

    async def close(self) -> None:
        """Close the connection; the broker must answer."""
        self.send(Close())
        await self.expect_until(Close)
        await self.expect_eof()


def _told(value: object) -> str:
    return "…" if callable(value) else repr(value)


def _check_error(
    error: Error | None, conditions: tuple[str, ...], *, expected: str, got: str
) -> None:
    if error is None or (conditions and error.condition not in conditions):
        raise Failed(expected, got)


@asynccontextmanager
async def connected(
    options: Options, *, address: str, lines: list[str], name: str = "", unique: str = ""
) -> AsyncIterator[Conversation]:
    """Connect to the broker; close the connection afterwards, or abort it after CLOSING_S.

    `unique` is the name in further addresses of the case; `address` itself if it is empty.
    """
    transport = await opened(options)
    try:
        yield Conversation(
            transport, options=options, address=address, lines=lines, name=name, unique=unique
        )
    finally:
        try:
            async with asyncio.timeout(CLOSING_S):
                await transport.close()
        except (OSError, TimeoutError):
            transport.abort()


__all__ = ["Attach", "Conversation", "connected"]
