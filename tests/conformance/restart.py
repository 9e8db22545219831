"""The broker's end and return: `--restart`, and whether a broker still answers."""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import IO, TYPE_CHECKING, Final

from broker.amqp.frames import HEAD_SIZE, SASL_HEADER
from broker.amqp.performatives import Close

from .logins import pause
from .transport import opened
from .verdict import Failed, Options

if TYPE_CHECKING:
    from .conversation import Conversation

COMMAND_S: Final = 120.0
"""Maximum seconds for the command of `--restart` to end."""

READY_S: Final = 60.0
"""Maximum seconds until a broker that was restarted answers."""

BACK_S: Final = 5.0
"""Maximum seconds to wait for a broker that died, if no command restarts it: a supervisor may."""

POLL_S: Final = 0.1

OUTPUT_BYTES: Final = 2_000
"""Maximum bytes of a failed command's output that are shown: the last ones."""


class RestartError(Exception):
    """The broker was not restarted, because of a reason in words."""


async def restart(options: Options) -> None:
    """Run the user's command, and wait until the broker answers. Raise RestartError."""
    if options.restart is None:
        raise RestartError("there is no --restart")
    # a file, not a pipe: a broker that the command leaves behind would keep a pipe open
    with tempfile.TemporaryFile() as output:
        process = await asyncio.create_subprocess_shell(
            options.restart,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=asyncio.subprocess.STDOUT,
            # ^C that ends the harness leaves the broker alone
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(COMMAND_S):
                status = await process.wait()
        except TimeoutError:
            raise RestartError(f"--restart did not end within {COMMAND_S:g} s") from None
        finally:
            if process.returncode is None:
                await _kill(process)
        if status:
            raise RestartError(f"--restart ended with status {status}: {_last_of(output)}")
    if not await answers_within(READY_S, options):
        raise RestartError(f"the broker does not answer {READY_S:g} s after --restart")


async def _kill(process: asyncio.subprocess.Process) -> None:
    """Kill a command that runs on after its time, or after the end of the run."""
    # it may end by itself just before
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def _last_of(output: IO[bytes]) -> str:
    size = output.seek(0, 2)
    output.seek(max(0, size - OUTPUT_BYTES))
    return output.read().decode(errors="replace").strip()


@asynccontextmanager
async def answering_last_close(peer: Conversation) -> AsyncIterator[None]:
    """Answer the close of a broker that stops, which otherwise waits for that."""
    answering = asyncio.create_task(_answer_last_close(peer))
    try:
        yield
    finally:
        answering.cancel()
        await asyncio.wait([answering])


async def _answer_last_close(peer: Conversation) -> None:
    while True:
        try:
            came = await peer.receive()
        except Failed as failed:
            if not failed.is_silence:
                return
        else:
            if isinstance(came.body, Close):
                peer.send(Close())


async def answers_within(seconds: float, options: Options) -> bool:
    """Return whether the broker answers before `seconds` are over; ask it again and again."""
    try:
        async with asyncio.timeout(seconds):
            while not await answers(options):
                await pause(POLL_S)
    except TimeoutError:
        return False
    return True


async def answers(options: Options) -> bool:
    """Return whether the broker accepts a connection and answers a protocol header (core 2.2)."""
    try:
        transport = await opened(options)
    except OSError:
        return False
    try:
        async with asyncio.timeout(options.timeout_s):
            transport.write(SASL_HEADER)
            return (await transport.read(HEAD_SIZE)).startswith(b"AMQP")
    except (OSError, ssl.SSLError, asyncio.IncompleteReadError):
        return False
    finally:
        transport.abort()
