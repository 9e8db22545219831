"""An archive's record of jobs that work in it, or were killed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from pyspark_amqp.jobs.layout import EVENTS, MESSAGES, STALE_S, Archive, ArchiveError


@pytest.mark.requirement("PIP-60")
def test_a_query_has_begun_when_it_knows_where_it_is(tmp_path: Path) -> None:
    """Spark creates the checkpoint and its folders before the first offset is in it."""
    archive = Archive(tmp_path)
    assert not archive.has_begun("events")
    offsets = archive.checkpoint("events") / "offsets"
    offsets.mkdir(parents=True)
    (offsets / ".0.crc").touch()
    assert not archive.has_begun("events")
    # Spark removes old offsets, so the first may be missing
    (offsets / "117").touch()
    assert archive.has_begun("events")


@pytest.mark.requirement("PIP-60")
@pytest.mark.parametrize(
    ("names", "left"),
    [
        ([".0.u.tmp", "..0.u.tmp.crc", ".0.crc"], []),
        (["0", ".0.crc", ".1.u.tmp"], [".0.crc", ".1.u.tmp", "0"]),
        ([], []),
    ],
)
def test_only_a_query_without_progress_is_cleared(
    tmp_path: Path, names: list[str], left: list[str]
) -> None:
    archive = Archive(tmp_path)
    archive.clear_first_offset("events")
    offsets = archive.checkpoint("events") / "offsets"
    offsets.mkdir(parents=True)
    for name in names:
        (offsets / name).touch()
    archive.clear_first_offset("events")
    assert sorted(path.name for path in offsets.iterdir()) == left


@pytest.mark.requirement("PIP-60")
def test_a_query_is_of_one_job_at_a_time(tmp_path: Path) -> None:
    one, other = Archive(tmp_path), Archive(tmp_path)
    with one.reserved("events-1", EVENTS), one.reserved("messages-1", MESSAGES):
        with (
            pytest.raises(ArchiveError, match=r"same events .*: say --what messages"),
            other.reserved("events-1", EVENTS),
        ):
            raise AssertionError
        with (
            pytest.raises(ArchiveError, match=r"same messages .*: wait for its end"),
            other.reserved("messages-1", MESSAGES),
        ):
            raise AssertionError
        with other.reserved("messages-2", MESSAGES):
            pass
    with other.reserved("events-1", EVENTS):
        pass


def test_what_killed_jobs_left_is_deleted_when_it_is_old(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    now = time.time()
    old = now - STALE_S - 1
    for name in ("killed-0", "at-work-0"):
        inner = archive.staging / name / "_temporary"
        inner.mkdir(parents=True)
        (inner / "part-0").touch()
        for path in (inner / "part-0", inner, inner.parent):
            os.utime(path, (old, old))
    os.utime(archive.staging / "at-work-0" / "_temporary" / "part-0", (now, now))
    (archive.staging / "young-0").mkdir()
    archive.sweep(now)
    assert {each.name for each in archive.staging.iterdir()} == {"at-work-0", "young-0"}


def test_an_archive_of_an_earlier_version_keeps_its_names(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    assert archive.data(EVENTS) == tmp_path / "events"
    (tmp_path / "journal").mkdir()
    assert archive.data(EVENTS) == tmp_path / "journal"
    assert archive.data(MESSAGES) == tmp_path / "messages"
