"""`jms-broker` as a user types it, in a process of its own.

Commands that a test starts and lets run are started like a user's, those that only print by
`preloaded.py`.
"""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.interop.broker_process import command, environment
from tests.interop.preloaded import preloaded_command

SECONDS = 60


class Client:
    """`jms-broker` with JMS_BROKER_URL set."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.environment = environment(JMS_BROKER_URL=url)

    @contextmanager
    def started(
        self, *arguments: str, stdout: int = subprocess.PIPE, stderr: int = subprocess.PIPE
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Yield a running command while the test does something else; kill it at the end."""
        process = subprocess.Popen(
            [*command(), *arguments],
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=stdout,
            stderr=stderr,
        )
        with process:
            try:
                yield process
            finally:
                process.kill()  # does nothing to a process that has ended

    def run(self, *arguments: str, typed: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*preloaded_command(), *arguments],
            env=self.environment,
            input=typed,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )

    def prints(self, *arguments: str, typed: bytes = b"") -> bytes:
        """Return the output of a command that must succeed without printing errors."""
        done = self.run(*arguments, typed=typed)
        assert done.returncode == 0, done.stderr
        assert done.stderr == b""
        return done.stdout

    def lists_users(self, *arguments: str) -> list[str]:
        """Return the lines of `user list` behind its header, with spaces between the columns."""
        header, *lines = self.prints("user", "list", *arguments).decode().splitlines()
        assert header.split("\t") == ["name", "roles", "administrator", "enabled", "source"]
        return [line.replace("\t", " ") for line in lines]

    def shows(self, *arguments: str) -> bytes:
        """Return the output of a command on a terminal."""
        ours, theirs = pty.openpty()
        with self.started(*arguments, stdout=theirs) as process:
            os.close(theirs)
            shown = b""
            while chunk := read_terminal(ours):
                shown += chunk
            os.close(ours)
            assert process.wait(timeout=SECONDS) == 0
        return shown


def read_terminal(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:  # on Linux, this means that the other side has closed
        return b""
