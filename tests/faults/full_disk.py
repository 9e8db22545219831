"""F5: a disk full of messages and of another program's file; nothing accepted is lost.

    python -m tests.faults.full_disk

The disk is an in-memory file system in a mount namespace of its own, which takes root.
`test_kill.py` has a variant without root: a file that may not grow.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from tests.faults.producer import Producer, died, drained
from tests.interop.broker_process import BrokerProcess, command
from tests.support.socket_client import SocketClient

DISK_MIB: Final = 20
FOREIGN_MIB: Final = 12
"""Size in MiB of a file on the disk that is not the broker's. Without it there is more room than
the reserve and its slack, however full the broker's own files have made the rest."""

RESERVE_MIB: Final = 4
"""Free space in MiB below which the broker makes its producers wait."""

BALLAST_MIB: Final = 1
"""Size in MiB of the ballast that the broker keeps on so small a disk."""

MANY: Final = 1_000_000
"""More messages than fit on the disk."""

PID: Final = re.compile(r" pid=(\d+)$", re.MULTILINE)


@cache
def reason_not_to() -> str | None:
    """Return why no disk can be mounted here, None if one can."""
    tried = subprocess.run(
        ["unshare", "--mount", "mount", "-t", "tmpfs", "-o", "size=1m", "none", "/mnt"],
        capture_output=True,
        text=True,
        check=False,
    )
    return None if tried.returncode == 0 else f"no mounts of one's own: {tried.stderr.strip()}"


class Disk:
    """A small file system in the mount namespace of a waiting process; others must enter it.

    `within` is the path of the disk as other processes reach it.
    """

    def __init__(self, folder: Path, mib: int) -> None:
        mount = 'mount -t tmpfs -o size="$1" none "$2" && echo mounted && exec cat'
        self._keeper: Final = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", mount, "sh", f"{mib}m", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._keeper.stdout is not None
        assert self._keeper.stdout.readline() == b"mounted\n"
        self.within: Final = Path(f"/proc/{self._keeper.pid}/root{folder}")

    def program(self, *arguments: str) -> list[str]:
        """Return a command that runs the program `arguments` where the disk is visible."""
        return ["nsenter", f"--mount=/proc/{self._keeper.pid}/ns/mnt", *arguments]

    def put_foreign_file(self) -> None:
        (self.within / "foreign").write_bytes(bytes(FOREIGN_MIB * 2**20))

    def remove_foreign_file(self) -> None:
        (self.within / "foreign").unlink()

    def close(self) -> None:
        with self._keeper:  # closes the pipes of the process, which ends it
            pass


@contextmanager
def small_disk(folder: Path, mib: int = DISK_MIB) -> Iterator[Disk]:
    disk = Disk(folder, mib)
    try:
        yield disk
    finally:
        disk.close()


def broker_on(disk: Disk, folder: Path, mount: Path) -> BrokerProcess:
    config = folder / "broker.toml"
    serving = [*command(), "serve", "--port", "0", "--config", str(config)]
    settings = (
        f'store = "sqlite:///{mount}/store.db"\n'
        f"disk_free_min = {RESERVE_MIB * 2**20}\ndisk_ballast = {BALLAST_MIB * 2**20}\n"
    )
    # nsenter changes to the root directory of the namespace, so the settings need the store's
    # absolute path
    return BrokerProcess(folder, settings=settings, program=disk.program(*environment(), *serving))


def environment() -> list[str]:
    """Return the command prefix with which Python finds the broker from any working directory."""
    root = Path(__file__).resolve().parents[2]
    return ["env", f"PYTHONPATH={root}"] if "-m" in command() else ["env"]


def port_of(broker: BrokerProcess) -> int:
    return urlsplit(broker.url).port or 0


async def fill(broker: BrokerProcess, first: int) -> tuple[list[int], bool]:
    """Send until the broker gives no more credit or is gone.

    Return the numbers of the accepted messages, and whether the broker is gone.
    """
    async with SocketClient(port_of(broker)) as client:
        producer = Producer(client, first)
        try:
            await producer.attach("q")
            await producer.run(MANY)
        except TimeoutError:
            pass  # no credit: the broker still runs
        except (ConnectionError, asyncio.IncompleteReadError):
            await died(client)
            return producer.accepted, True
        return producer.accepted, False


async def run() -> str:
    """Fill the disk beside a foreign file, remove that file, go on; return the verdict."""
    with (
        tempfile.TemporaryDirectory() as one,
        tempfile.TemporaryDirectory() as two,
        small_disk(Path(two)) as disk,
    ):
        folder, mount = Path(one), Path(two)
        disk.put_foreign_file()
        broker = broker_on(disk, folder, mount)
        accepted, is_gone = await fill(broker, 0)
        stopped = f"ended with {broker.wait()}" if is_gone else "kept its clients"
        said = broker.log.read_text()
        is_told = "jms-broker: " in said or not is_gone
        disk.remove_foreign_file()
        if is_gone:
            broker = broker_on(disk, folder, mount)
        held = await drained(port_of(broker), "q", 0)
        lost = len(set(accepted) - set(held))
        in_order = held == sorted(set(held))
        more = await _some_more(broker, max(held) + 1)
        broker.terminate()
        broker.wait()
        line = (
            f"F5 full disk: accepted {len(accepted)}, lost {lost}, in order {in_order},"
            f" {stopped}, {more} more once there was room"
        )
        holds = accepted and not lost and in_order and more and is_told
        return f"{'passed' if holds else 'FAILED'}: {line}"


async def _some_more(broker: BrokerProcess, first: int) -> int:
    async with SocketClient(port_of(broker)) as client:
        producer = Producer(client, first)
        await producer.attach("q2")
        await producer.run(100)
        return len(producer.accepted)


def main() -> int:
    """Print the verdict; return the exit status."""
    reason = reason_not_to()
    if reason is not None:
        print(f"SKIPPED: F5 full disk: {reason}")
        return 0
    verdict = asyncio.run(run())
    print(verdict)
    return 0 if verdict.startswith("passed") else 1


if __name__ == "__main__":
    os.environ.pop("JMS_BROKER_STORE", None)
    sys.exit(main())
