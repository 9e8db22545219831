"""Files of a store are for its user alone; errors name a folder that cannot be used."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import Final

import pytest

from tests.faults.test_same_store import SETTINGS, run, send, serve
from tests.interop.broker_process import BrokerProcess, command

pytestmark = pytest.mark.slow

FILES: Final = ["store.db", "store.db-wal", "store.db-shm", "store.db.lock", "store.db.ballast"]
"""The names of a store's files while it is in use."""

AUDIT: Final = "store.db.audit"
"""The folder of the audit records."""


async def test_files_are_for_their_user_alone_whatever_the_umask(tmp_path: Path) -> None:
    """The files that a broker makes, also after a kill, and those that a salvage makes."""
    settings = 'store = "sqlite:///data/within/store.db"\n'
    serving = [*command(), "serve", "--port", "0", "--config", str(tmp_path / "broker.toml")]
    open_to_all = ("sh", "-c", 'umask 0 && exec "$@"', "sh")
    broker = BrokerProcess(tmp_path, settings=settings, program=[*open_to_all, *serving])
    await send(broker, 10)
    folder = tmp_path / "data" / "within"
    assert modes(tmp_path / "data") == {"within": 0o700}
    assert modes(folder) == {**dict.fromkeys(FILES, 0o600), AUDIT: 0o700}
    assert set(modes(folder / AUDIT).values()) == {0o600}
    broker.kill()
    made = tmp_path / "made" / "new.db"
    status, line = run("store", "salvage", folder / "store.db", made, within=open_to_all)
    assert (status, line) == (0, f"everything is in {made}")
    assert modes(made.parent) == {"new.db": 0o600, "new.db.lock": 0o600}
    assert stat.S_IMODE(made.parent.stat().st_mode) == 0o700


def modes(folder: Path) -> dict[str, int]:
    return {each.name: stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()}


async def test_older_files_are_closed_to_others_and_the_log_tells(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path, settings=SETTINGS)
    await send(broker, 10)
    broker.kill()
    for name in FILES:
        (tmp_path / name).chmod(0o644)
    again = BrokerProcess(tmp_path, settings=SETTINGS)
    assert {name: modes(tmp_path)[name] for name in FILES} == dict.fromkeys(FILES, 0o600)
    assert again.stop() == 0
    log = again.log.read_text()
    for name in FILES:
        assert f"{tmp_path / name}: mode 0644 is 0600 now" in log


# -- what cannot be used


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with an empty store, with the modes that a broker gives them."""
    (tmp_path / "data").mkdir(0o700)
    (tmp_path / "data" / "store.db").touch(0o600)
    return tmp_path / "data"


def without_rights() -> tuple[str, ...]:
    """Return the start of a command that runs a program as a user for whom file modes count."""
    if os.geteuid() != 0:
        return ()
    if shutil.which("setpriv") is None:
        pytest.skip("root may do everything, and there is no setpriv")
    return "setpriv", "--bounding-set=-all"


NOT_WRITABLE: Final = (
    "the folder FOLDER of the store is not writable for user UID:"
    " `chown UID 'FOLDER' && chmod u+rwx 'FOLDER'`, or choose another store"
)

UNUSABLE: Final = [
    pytest.param(
        "new/store.db",
        ".",
        0o500,
        "the folder FOLDER/new of the store FOLDER/new/store.db is not there and cannot"
        " be made (Permission denied): make it, writable for user UID, or choose another store",
        id="a folder that cannot be made",
    ),
    pytest.param("new.db", ".", 0o500, NOT_WRITABLE, id="a folder that cannot be written"),
    pytest.param("store.db", ".", 0o000, NOT_WRITABLE, id="a folder that cannot be entered"),
    pytest.param(
        "store.db",
        "store.db",
        0o400,
        "FOLDER/store.db, a file of the store, cannot be opened by user UID (Permission denied):"
        " it must belong to the user that runs the broker, with mode 0600",
        id="a file that cannot be written",
    ),
]


@pytest.mark.parametrize(("store", "closed", "mode", "says"), UNUSABLE)
def test_a_store_that_cannot_be_used_is_named_with_what_to_do(
    folder: Path, store: str, closed: str, mode: int, says: str
) -> None:
    (folder / closed).chmod(mode)
    status, line = serve(folder / store, without_rights())
    (folder / closed).chmod(0o700)
    expected = says.replace("FOLDER", str(folder)).replace("UID", str(os.geteuid()))
    assert (status, line) == (1, f"jms-broker: {expected}")


COMMANDS: Final = [
    pytest.param("none/store.db", 0o700, 3, "none/store.db: its folder FOLDER/none", id="missing"),
    pytest.param("store.db", 0o500, 1, NOT_WRITABLE, id="not to be written"),
    pytest.param("store.db", 0o000, 1, NOT_WRITABLE, id="not to be entered"),
]


@pytest.mark.parametrize(("store", "mode", "expected_status", "says"), COMMANDS)
@pytest.mark.parametrize("what", ["check", "migrate"])
def test_store_commands_name_the_folder(
    folder: Path, what: str, store: str, mode: int, expected_status: int, says: str
) -> None:
    folder.chmod(mode)
    status, line = run("store", what, folder / store, within=without_rights())
    folder.chmod(0o700)
    expected = says.replace("FOLDER", str(folder)).replace("UID", str(os.geteuid()))
    assert (status, expected in line) == (expected_status, True), line
