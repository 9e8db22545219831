"""The files of a store: their paths, their modes, and the errors if they cannot be used."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from storage.api import StoreError
from storage.sql.sqlite import files
from storage.sql.sqlite.files import (
    prepare_folder,
    refuse_foreign,
    refuse_mounted_file,
    refuse_second_names,
    resolved,
    tighten,
    unusable,
)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Return a file in a folder of its own, both with the modes that the broker gives them."""
    folder = tmp_path / "data"
    folder.mkdir(0o700)
    (folder / "store.db").touch(0o600)
    return folder / "store.db"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


NAMES = [
    pytest.param("data/store.db", id="itself"),
    pytest.param("data/../data/./store.db", id="through the parent"),
    pytest.param("folder/store.db", id="in a linked folder"),
    pytest.param("link.db", id="a link"),
    pytest.param("second.db", id="a link to a link"),
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("exists", [True, False], ids=["", "not made yet"])
def test_all_paths_of_a_file_are_one(
    database: Path, tmp_path: Path, name: str, exists: bool
) -> None:
    if not exists:
        database.unlink()
    (tmp_path / "folder").symlink_to("data")
    (tmp_path / "link.db").symlink_to(database)
    (tmp_path / "second.db").symlink_to("link.db")
    assert resolved(tmp_path / name) == database


def test_a_relative_path_is_one_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert resolved(Path("store.db")) == tmp_path / "store.db"


def test_all_missing_folders_are_made_for_one_user(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    for _ in range(2):
        prepare_folder(tmp_path / "a" / "b" / "store.db")
        assert [mode(tmp_path / each) for each in (".", "a", "a/b")] == [0o755, 0o700, 0o700]


def test_a_file_in_place_of_a_folder_is_named(database: Path) -> None:
    says = rf"the folder {database} of the store .* cannot be made \(File exists\)"
    with pytest.raises(StoreError, match=says):
        prepare_folder(database / "store.db")


def test_files_that_others_could_read_are_closed_and_told(database: Path) -> None:
    assert tighten(database) == []
    modes = {"": 0o644, "-wal": 0o640, "-shm": 0o600, ".lock": 0o666}
    for suffix, before in modes.items():
        file = database.with_name(database.name + suffix)
        file.touch()
        file.chmod(before)
    assert tighten(database) == [
        f"other users could access a file of the store, {database}{suffix}:"
        f" mode {modes[suffix]:04o} is 0600 now"
        for suffix in ("", "-wal", ".lock")
    ]
    assert {mode(each) for each in database.parent.iterdir()} == {0o600}
    assert tighten(database) == []


def test_a_file_whose_mode_cannot_be_changed_is_told(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.chmod(0o644)
    for error, reason in ((None, ""), (PermissionError(1, "not yours"), r" \(not yours\)")):

        def chmod(path: Path, mode: int, error: OSError | None = error) -> None:  # noqa: ARG001
            if error is not None:
                raise error

        monkeypatch.setattr(Path, "chmod", chmod)
        (told,) = tighten(database)
        said = f"mode 0644 cannot be changed{reason}: as its owner run chmod 600 {database}"
        assert told.endswith(said.replace("\\", ""))


FOLDERS = [
    pytest.param(0o755, False, id="others may read"),
    pytest.param(0o1777, False, id="others may add files, not replace them"),
    pytest.param(0o777, True, id="others may replace files"),
]


@pytest.mark.parametrize(("before", "is_told"), FOLDERS)
def test_a_folder_that_exists_is_left_as_it_is(database: Path, before: int, is_told: bool) -> None:
    database.parent.chmod(before)
    told = tighten(database)
    assert mode(database.parent) == before
    assert [f"chmod o-w {database.parent}" in each for each in told] == [True] * is_told


def test_a_file_with_a_second_name_is_refused(database: Path, tmp_path: Path) -> None:
    refuse_second_names(tmp_path / "none.db")
    refuse_second_names(database)
    (tmp_path / "hard.db").hardlink_to(database)
    for name in (database, tmp_path / "hard.db"):
        with pytest.raises(StoreError, match=f"the store {name} has 2 hard links.*remove the"):
            refuse_second_names(name)
    (tmp_path / "third.db").hardlink_to(database)
    with pytest.raises(StoreError, match="has 3 hard links"):
        refuse_second_names(database)


def test_a_folder_is_no_database(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=f"the store {tmp_path} is a folder: name a file in it"):
        refuse_second_names(tmp_path)


def test_a_mount_of_the_file_alone_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text("36 35 98:0 /store.db /a\\040b/store.db rw - ext4 /dev/root rw\n")
    monkeypatch.setattr(files, "MOUNTS", mounts)
    refuse_mounted_file(Path("/a/store.db"))
    refuse_mounted_file(Path("/a b"))
    with pytest.raises(StoreError, match=r"/a b/store\.db is mounted as a single file"):
        refuse_mounted_file(Path("/a b/store.db"))
    mounts.unlink()
    refuse_mounted_file(Path("/a b/store.db"))


def test_a_file_that_may_be_written_passes(database: Path) -> None:
    refuse_foreign(database)
    database.unlink()
    with pytest.raises(StoreError, match=r"the folder .* of the store is not writable"):
        refuse_foreign(database)


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    error = unusable(tmp_path / "none" / "store.db", FileNotFoundError(2, "No such file"))
    assert f"the folder {tmp_path / 'none'} of the store is not there" in str(error)
