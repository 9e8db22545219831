"""A second broker or a store command is refused if its path leads to a store that is in use."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.faults.full_disk import reason_not_to
from tests.faults.producer import Producer, drained
from tests.faults.server import Place, Server, strace, why_no_strace
from tests.faults.test_kill import port_of
from tests.interop.broker_process import BrokerProcess, command, environment
from tests.interop.preloaded import preloaded_command
from tests.support.socket_client import SocketClient

pytestmark = pytest.mark.slow

PATIENCE_S: Final = 30
MESSAGES: Final = 200

SETTINGS: Final = 'store = "sqlite:///store.db"\n'


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Yield a broker on `store.db` in its folder."""
    broker = BrokerProcess(tmp_path_factory.mktemp("first"), settings=SETTINGS)
    yield broker
    assert broker.stop() == 0


def run(*arguments: str | Path, within: tuple[str, ...] = ()) -> tuple[int, str]:
    """Return the exit status and the last line of `jms-broker`; a broker must end by itself."""
    program = preloaded_command() if arguments[0] == "store" and not within else command()
    ended = subprocess.run(
        [*within, *program, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
        env=environment(),
    )
    lines = (ended.stdout + ended.stderr).splitlines()
    return ended.returncode, lines[-1] if lines else ""


def serve(database: Path, within: tuple[str, ...] = ()) -> tuple[int, str]:
    return run("serve", "--port", "0", "--store", f"sqlite:///{database}", within=within)


async def send(broker: BrokerProcess, count: int, first: int = 0) -> None:
    async with SocketClient(port_of(broker)) as client:
        producer = Producer(client, first)
        await producer.attach("q")
        await producer.run(count)


async def is_refused(database: Path, *, says: str, within: tuple[str, ...] = ()) -> None:
    """Check that no broker gets the store, nor a command that reads or writes it."""
    for status, line in (
        serve(database, within),
        run("store", "check", database, within=within),
        run("store", "migrate", database, within=within),
    ):
        assert (status, says in line) == (1, True), line


def bind(source: Path, target: Path) -> tuple[str, ...]:
    """Return the start of a command that runs a program for which `target` shows `source`.

    No other program sees that. Skip the test if it is impossible here.
    """
    reason = reason_not_to()
    if reason is not None:
        pytest.skip(reason)
    mount = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
    return "unshare", "--mount", "sh", "-c", mount, "sh", str(source), str(target)


def linked_file(folder: Path, place: Path) -> Path:
    (place / "link.db").symlink_to(folder / "store.db")
    return place / "link.db"


def linked_folder(folder: Path, place: Path) -> Path:
    (place / "link").symlink_to(folder)
    return place / "link" / "store.db"


PATHS: Final = [
    pytest.param(lambda folder, _: folder / "store.db", id="the same path"),
    pytest.param(lambda folder, _: folder / ".." / folder.name / "store.db", id="a path with .."),
    pytest.param(linked_folder, id="a linked folder"),
    pytest.param(linked_file, id="a symbolic link"),
]


@pytest.mark.requirement("PRD-03")
@pytest.mark.parametrize("path", PATHS)
async def test_a_store_in_use_is_refused_by_every_path(
    first: BrokerProcess, tmp_path: Path, path: Callable[[Path, Path], Path]
) -> None:
    database = path(first.log.parent, tmp_path)
    await is_refused(database, says=f"in use by process {first.pid}; stop that one first")
    await send(first, 10)


@pytest.mark.requirement("PRD-03")
async def test_a_hard_link_is_refused_while_its_store_is_in_use(
    first: BrokerProcess, tmp_path: Path
) -> None:
    database = tmp_path / "hard.db"
    database.hardlink_to(first.log.parent / "store.db")
    await is_refused(database, says=f"the store {database} has 2 hard links")
    database.unlink()
    await send(first, 10)


@pytest.mark.requirement("PRD-03")
async def test_a_bound_folder_is_refused(first: BrokerProcess, tmp_path: Path) -> None:
    within = bind(first.log.parent, tmp_path)
    says = f"{tmp_path}/store.db is in use by process {first.pid}"
    await is_refused(tmp_path / "store.db", says=says, within=within)
    await send(first, 10)


@pytest.mark.requirement("PRD-03")
async def test_a_bound_file_is_refused(first: BrokerProcess, tmp_path: Path) -> None:
    database = tmp_path / "bound.db"
    database.touch()
    within = bind(first.log.parent / "store.db", database)
    says = "is in use by a process that has opened it under another path"
    await is_refused(database, says=says, within=within)
    await send(first, 10)


async def test_a_store_on_a_read_only_mount_is_refused_to_readers_while_in_use(
    first: BrokerProcess, tmp_path: Path
) -> None:
    """No lock file can be opened for writing there: the lock on the database counts."""
    bound = bind(first.log.parent, tmp_path)
    mount = f"mount -o remount,bind,ro '{tmp_path}' && exec \"$@\""
    within = (*bound, "sh", "-c", mount, "sh")
    status, line = run("store", "check", tmp_path / "store.db", within=within)
    assert (status, "is in use by" in line) == (1, True), line


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


@pytest.mark.requirement("PRD-03")
async def test_after_a_kill_a_hard_link_is_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    """The log lies beside the other name, so what was committed would not be there."""
    broker = BrokerProcess(tmp_path, settings=SETTINGS)
    await send(broker, MESSAGES)
    broker.kill()
    database, link = tmp_path / "store.db", tmp_path / "hard.db"
    assert (tmp_path / "store.db-wal").stat().st_size > 0
    link.hardlink_to(database)
    before = names(tmp_path)
    for name in (link, database):
        await is_refused(name, says=f"the store {name} has 2 hard links")
    assert names(tmp_path) == before, "a refused start leaves nothing behind"
    link.unlink()
    again = BrokerProcess(tmp_path, settings=SETTINGS)
    assert len(await drained(port_of(again), "q", MESSAGES)) >= MESSAGES
    assert again.stop() == 0


async def test_a_file_that_is_mounted_alone_is_refused(tmp_path: Path) -> None:
    """Its log would lie outside of the mount, which a container, for example, does not keep."""
    broker = BrokerProcess(tmp_path, settings=SETTINGS)
    await send(broker, MESSAGES)
    broker.kill()
    database = tmp_path / "with a blank.db"
    database.touch()
    within = bind(tmp_path / "store.db", database)
    await is_refused(database, says="is mounted as a single file", within=within)
    again = BrokerProcess(tmp_path, settings=SETTINGS)
    assert len(await drained(port_of(again), "q", MESSAGES)) >= MESSAGES
    assert again.stop() == 0


async def test_a_file_system_that_locks_no_database_is_told_in_the_log(tmp_path: Path) -> None:
    """Like NFS: only the lock on the lock file, which is taken first, protects the store."""
    if reason := why_no_strace():
        pytest.skip(reason)
    server = Server(Place(tmp_path))
    await server.start(within=strace("flock:error=EBADF:when=2"))
    status, line = serve(server.place.database)
    assert (status, "in use by process" in line) == (1, True), line
    assert await server.stop() == 0
    told = "cannot lock the store itself (Bad file descriptor)"
    assert [told in line for line in server.lines].count(True) == 1
