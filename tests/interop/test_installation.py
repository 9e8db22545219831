"""The installation of foreign clients: once for all checkouts of a user."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.support.caches import KEPT_DAYS, LOCK, installation, note_installed


@pytest.fixture(autouse=True)
def own_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))


@pytest.fixture
def pins(tmp_path: Path) -> Path:
    """Return a file that names the versions to install."""
    file = tmp_path / "pins"
    file.write_text("client 1.0")
    return file


def install(pins: Path) -> Path:
    """Install what is missing, and return where it is."""
    with installation("client", [pins]) as (folder, missing):
        if missing:
            (folder / "program").touch()
            note_installed(folder)
    return folder


def test_it_is_missing_until_it_was_installed(pins: Path) -> None:
    with installation("client", [pins]) as (folder, missing):
        assert missing
    assert install(pins) == folder
    with installation("client", [pins]) as (again, missing):
        assert (again, missing) == (folder, False)


def test_other_versions_have_another_folder(pins: Path) -> None:
    first = install(pins)
    pins.write_text("client 1.1")
    with installation("client", [pins]) as (folder, missing):
        assert missing
        assert folder != first


@pytest.mark.parametrize(
    ("days", "remains"),
    [
        pytest.param(KEPT_DAYS - 1, True, id="used within the time"),
        pytest.param(KEPT_DAYS + 1, False, id="not used for too long"),
    ],
)
def test_an_install_removes_what_no_test_uses_any_more(
    pins: Path, days: int, remains: bool
) -> None:
    first = install(pins)
    then = time.time() - days * 86_400
    os.utime(first / LOCK, (then, then))
    pins.write_text("client 1.1")
    assert (install(pins) / "program").exists()
    assert first.exists() is remains


def test_each_use_counts(pins: Path) -> None:
    first = install(pins)
    os.utime(first / LOCK, (0, 0))
    install(pins)
    pins.write_text("client 1.1")
    install(pins)
    assert first.exists()
