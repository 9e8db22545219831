"""Checks of the machine and the installation: D01, D02, D04, D05, D18, D19."""

from __future__ import annotations

import os
import re
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import broker
from broker.compiled import COMPILED, INTERPRETED, build_kind
from broker.doctor.checked_broker import CheckedBroker, existing_folder
from broker.doctor.finding import (
    CheckResult,
    failure,
    joined,
    named,
    not_checked,
    warning,
    well,
)
from broker.net.connection_admission import DESCRIPTORS_RESERVED

NO_SETTINGS: Final = "the settings are not here; run the doctor on the broker's machine"

HOME: Final = Path(broker.__file__).resolve().parents[1]
"""The folder of the packages of this installation."""

PACKAGES: Final = ("broker", "storage", "pyspark_amqp")

OWN_MODULE: Final = "jms_broker.py"
"""The file beside the packages of every installation of this project."""

CONNECTIONS_LEAST: Final = 100
"""Connections with fewer than which a broker is of little use."""

AHEAD_S: Final = 60.0
"""Seconds by which a file may be newer than the clock says."""

SYNCS: Final = 5
SYNC_BYTES: Final = 4096
SYNC_WARNING_S: Final = 0.02
SYNC_FAILURE_S: Final = 0.25
"""Median seconds of a sync: each durable message waits for one."""

ROOM_SHARE: Final = 0.1
"""Share of the disk with less of which free there is a warning."""

_OPEN_FILES: Final = re.compile(r"^Max open files\s+(\d+)", re.MULTILINE)


def descriptor_limit(checked: CheckedBroker) -> CheckResult:
    """Compare the limit of open files with connections_max (D01)."""
    if checked.settings is None:
        return not_checked(NO_SETTINGS)
    files, whose = _open_files(checked.pid)
    if files is None:
        return well(f"{whose} may open any number of files")
    possible = max(0, files - DESCRIPTORS_RESERVED)
    wanted = checked.settings.connections_max
    text = f"{whose} may open {files} files: room for {possible} connections"
    remedy = "raise the limit (LimitNOFILE= of systemd, ulimit -n), or lower connections_max"
    if possible < CONNECTIONS_LEAST:
        return failure(text, remedy)
    if wanted == 0 or possible < wanted:
        return warning(f"{text}, connections_max = {wanted}", remedy)
    return well(text)


def _open_files(pid: int | None) -> tuple[int | None, str]:
    """Return the limit of the running broker, or of this process, None for none; and whose."""
    if pid is not None:
        try:
            found = _OPEN_FILES.search(Path(f"/proc/{pid}/limits").read_text())
        except OSError:
            found = None  # it has ended, or belongs to another user
        if found is not None:
            return int(found[1]), f"process {pid}"
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (None if files == resource.RLIM_INFINITY else files), "a broker started from here"


def clock(checked: CheckedBroker) -> CheckResult:
    """Look for files of the broker that are newer than the clock says (D02)."""
    if checked.settings is None:
        return not_checked(NO_SETTINGS)
    newest = max(_times(checked), default=(0.0, None))
    ahead_s = newest[0] - checked.now_s
    if ahead_s <= AHEAD_S:
        return well("no file of the broker is newer than the clock says")
    return failure(
        f"{newest[1]} was written {ahead_s:.0f} s later than it is now: the clock was set back",
        "set the clock (timedatectl, chronyc tracking) before the broker starts: expiry and"
        " delivery times go by it",
    )


def _times(checked: CheckedBroker) -> Iterator[tuple[float, Path]]:
    """Yield when each file of the store and of the audit was written, in s since 1970."""
    folder = checked.settings.audit_folder() if checked.settings is not None else None
    paths = [] if folder is None or not folder.is_dir() else sorted(folder.glob("audit-*"))
    if checked.database is not None:
        paths += [Path(f"{checked.database}{suffix}") for suffix in ("", "-wal")]
    for path in paths:
        if path.exists():
            yield path.stat().st_mtime, path


def sync_latency(checked: CheckedBroker) -> CheckResult:
    """Measure how long a sync takes on the disk of the store (D04)."""
    if checked.database is None:
        return not_checked("the store is not on a disk of this machine")
    folder = existing_folder(checked.database)
    try:
        median_s = statistics.median(_syncs(folder))
    except OSError as error:
        return failure(
            f"{folder}: nothing can be written there ({error.strerror})",
            "let the broker's account write to it, or name another store",
        )
    text = f"{folder}: a sync takes {median_s * 1000:.1f} ms (median of {SYNCS})"
    remedy = "put the store on a local disk that syncs faster: each durable message waits for it"
    if median_s > SYNC_FAILURE_S:
        return failure(text, remedy)
    return warning(text, remedy) if median_s > SYNC_WARNING_S else well(text)


def _syncs(folder: Path) -> Iterator[float]:
    """Yield how long each of SYNCS syncs of a new file in `folder` takes, in s."""
    with tempfile.TemporaryFile(dir=folder, prefix=".jms-broker-doctor-") as file:
        for _ in range(SYNCS):
            file.write(bytes(SYNC_BYTES))
            file.flush()
            began_s = time.monotonic()
            os.fdatasync(file.fileno())
            yield time.monotonic() - began_s


def free_disk(checked: CheckedBroker) -> CheckResult:
    """Compare the free bytes of the store's disk with disk_free_min (D05)."""
    if checked.database is None:
        return not_checked("the store is not on a disk of this machine")
    assert checked.settings is not None
    folder = existing_folder(checked.database)
    usage = shutil.disk_usage(folder)
    least = checked.settings.disk_free_min
    text = f"{folder}: {usage.free // 2**20} MiB are free, {usage.free * 100 // usage.total} %"
    remedy = "make room: below disk_free_min producers get no credit"
    if usage.free < least:
        return failure(f"{text}; disk_free_min is {least // 2**20} MiB", remedy)
    if usage.free < max(2 * least, int(usage.total * ROOM_SHARE)):
        return warning(f"{text}; disk_free_min is {least // 2**20} MiB", remedy)
    return well(text)


def build(checked: CheckedBroker) -> CheckResult:
    """Look whether the broker is compiled, and whether uvloop is there (D18)."""
    told = "" if checked.running is None else checked.running.build
    missing = []
    if (told or build_kind()) == INTERPRETED:
        missing.append(
            warning(
                "the broker is interpreted, at about a twentieth of the compiled one's speed",
                "install a compiled wheel (`jms-broker --version` ends with (compiled))",
            )
        )
    is_here = checked.settings is not None
    if is_here and find_spec("uvloop") is None:
        missing.append(warning("uvloop is not installed", "pip install uvloop"))
    return joined(missing, f"{COMPILED}{', with uvloop' if is_here else ''}")


def foreign_packages(checked: CheckedBroker) -> CheckResult:  # noqa: ARG001
    """Look for other packages with the names of this project's on the path of Python (D19)."""
    ahead, behind = _foreign()
    remedy = "rename or uninstall them, or give the broker a virtual environment of its own"
    if ahead:
        return failure(f"on the path of Python {named(ahead)} are before those of {HOME}", remedy)
    if behind:
        return warning(f"on the path of Python there are also {named(behind)}", remedy)
    return well(f"{', '.join(PACKAGES)} on the path of Python are those of {HOME}")


def _foreign() -> tuple[list[str], list[str]]:
    """Return modules with the names of PACKAGES before and behind ours on the path of Python.

    Other installations of this project are left out.
    """
    ahead: list[str] = []
    behind: list[str] = []
    chosen = ahead
    for folder in (Path(entry or ".").resolve() for entry in sys.path):
        if folder == HOME:
            chosen = behind
        elif not (folder / OWN_MODULE).is_file():
            chosen += _modules_in(folder)
    return ahead, behind


def _modules_in(folder: Path) -> list[str]:
    """Return the modules and packages in `folder` that have the name of one of PACKAGES."""
    files = [folder / form for name in PACKAGES for form in (f"{name}/__init__.py", f"{name}.py")]
    return [str(file) for file in files if file.is_file()]
