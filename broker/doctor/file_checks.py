"""Checks of the broker's files and of its store: D03, D06, D20."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import quote

from broker.audit.reading import RecordChoice, records
from broker.doctor.checked_broker import CheckedBroker
from broker.doctor.finding import CheckResult, failure, joined, not_checked, warning, well
from broker.doctor.machine_checks import NO_SETTINGS
from broker.settings import MEMORY, POSTGRESQL, Settings
from broker.tls_settings import TlsSettings

WEEK_S: Final = 7 * 86_400

SQLITE_LEAST: Final = (3, 37, 0)
"""Oldest version of SQLite that is tested."""

WAL: Final = "wal"

STORE_SUFFIXES: Final = ("", "-wal", "-shm", ".ballast")


# -- D03


def file_rights(checked: CheckedBroker) -> CheckResult:
    """Look for secrets that others can read, and files that they can replace (D03)."""
    if checked.settings is None:
        return not_checked(NO_SETTINGS)
    found = [_secret(path) for path in secrets_of(checked.settings)]
    if checked.settings.acl_file is not None:
        found.append(_rules(checked.settings.acl_file))
    found += _store_files(checked)
    return joined(found, "secrets and the store are for the broker's account alone")


def secrets_of(settings: Settings) -> Iterator[Path]:
    """Yield the files with secrets that the settings name, as far as they exist."""
    named = [settings.users_file, settings.password_file]
    for tls in tables_of(settings).values():
        named += [tls.key, tls.key_password_file, *(each.key for each in tls.name)]
    yield from (path for path in named if path is not None and path.is_file())


def tables_of(settings: Settings) -> dict[str, TlsSettings]:
    """Return each table of TLS, under the name that errors of the broker have for it."""
    found = {} if settings.tls is None else {"tls": settings.tls}
    for listener in settings.listener:
        if listener.tls is not None:
            found[f"listener {listener.name}: tls"] = listener.tls
    return found


def _secret(path: Path) -> CheckResult:
    """Judge the rights on a file with secrets; a group may read it, such as ssl-cert."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if not os.access(path, os.R_OK):
        return failure(f"{path} cannot be read by uid {os.geteuid()}", f"chown or chmod {path}")
    if mode & stat.S_IRWXO:
        return failure(f"every user can access {path}, mode {mode:04o}", f"chmod 600 {path}")
    if mode & stat.S_IWGRP:
        return warning(f"a group can write {path}, mode {mode:04o}", f"chmod 640 {path}")
    return well(str(path))


def _rules(path: Path) -> CheckResult:
    """Judge the rights on the file of rules: whoever writes to it gives rights."""
    if path.is_file() and stat.S_IMODE(path.stat().st_mode) & stat.S_IWOTH:
        return failure(f"every user can write {path}", f"chmod o-w {path}")
    return well(str(path))


def _store_files(checked: CheckedBroker) -> Iterator[CheckResult]:
    """Judge the rights on the files of an SQLite store, and on their folder."""
    database = checked.database
    if database is None or not database.parent.is_dir():
        return
    folder = stat.S_IMODE(database.parent.stat().st_mode)
    if folder & stat.S_IWOTH and not folder & stat.S_ISVTX:
        yield failure(
            f"every user can replace the store: {database.parent} has mode {folder:04o}",
            f"chmod o-w {database.parent}",
        )
    if not os.access(database.parent, os.W_OK):
        yield failure(
            f"uid {os.geteuid()} cannot write to {database.parent}", f"chown {database.parent}"
        )
    for path in (Path(f"{database}{suffix}") for suffix in STORE_SUFFIXES):
        if path.is_file() and stat.S_IMODE(path.stat().st_mode) & stat.S_IRWXO:
            yield failure(f"every user can access {path}", f"chmod 600 {path}")


# -- D06


def store_version(checked: CheckedBroker) -> CheckResult:
    """Compare SQLite or PostgreSQL, and the schema of the store, with what is needed (D06)."""
    if checked.settings is None:
        return not_checked(NO_SETTINGS)
    if checked.settings.store == MEMORY:
        return well("the store is in memory")
    if checked.settings.store.startswith(POSTGRESQL):
        from broker.doctor.postgres_check import server_settings

        return server_settings(checked.settings.store)
    if sqlite3.sqlite_version_info < SQLITE_LEAST:
        return failure(
            f"SQLite is {sqlite3.sqlite_version}", "use a Python with SQLite 3.37 or newer"
        )
    assert checked.database is not None
    if not checked.database.exists() or checked.database.stat().st_size == 0:
        return well(f"SQLite {sqlite3.sqlite_version}; there is no store yet")
    return _schema(checked.database)


def _schema(database: Path) -> CheckResult:
    """Judge the file of an SQLite store. Nothing of it is changed, and no lock is taken."""
    from storage.sql.schema import HEAD

    # immutable: SQLite makes no files beside the store, and the broker may run
    address = f"file:{quote(str(database))}?mode=ro&immutable=1"
    try:
        connection = sqlite3.connect(address, uri=True)
        try:
            (journal,) = connection.execute("PRAGMA journal_mode").fetchone()
            row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        finally:
            connection.close()
    except sqlite3.Error as error:
        return failure(
            f"{database} is no store of jms-broker, or is damaged: {error}",
            f"jms-broker store check {database}; or name another file in store",
        )
    version = "none" if row is None else str(row[0])
    text = f"SQLite {sqlite3.sqlite_version}; schema {version}, journal {journal}"
    if version > HEAD:
        return failure(
            f"{text}: a newer jms-broker made the store, this one knows schemas up to {HEAD}",
            "start the newer version, or restore the backup that was made before the upgrade",
        )
    if version < HEAD:
        return warning(
            f"{text}: the next start migrates it to {HEAD}", "copy the store first (backup)"
        )
    # immutable shows another journal for a file whose header says write-ahead log
    if _header_journal(database) != WAL:
        return warning(f"{text}: another program has changed the journal", "start the broker once")
    return well(f"SQLite {sqlite3.sqlite_version}; schema {version}, journal {WAL}")


def _header_journal(database: Path) -> str:
    """Return `wal` if the header of the file says so (SQLite's file format, 1.3.3), else legacy."""
    with database.open("rb") as file:
        head = file.read(20)
    return WAL if head[18:20] == b"\2\2" else "legacy"


# -- D20


def backup_age(checked: CheckedBroker) -> CheckResult:
    """Look for the last backup in the audit (D20)."""
    if checked.settings is None:
        return _of_running(checked)
    if checked.settings.store == MEMORY:
        return well("a store in memory has no backups")
    if checked.settings.store.startswith(POSTGRESQL):
        return not_checked("backups of PostgreSQL are made by its own tools")
    if checked.database is None or not checked.database.exists():
        return well("there is no store yet")
    if _has_backup_since_start(checked):
        return well("a backup was made since the start of the broker")
    last = _last_backup(checked.settings.audit_folder())
    remedy = "run `jms-broker backup FILE` from a timer"
    if last is None:
        return warning("no backup is recorded in the audit", remedy)
    days = (checked.now_s - last.timestamp()) / 86_400
    text = f"the last backup was made on {last:%Y-%m-%d %H:%M UTC}, {days:.0f} days ago"
    return warning(text, remedy) if days * 86_400 > WEEK_S else well(text)


def _of_running(checked: CheckedBroker) -> CheckResult:
    """Return what a running broker alone tells: backups since its start."""
    if checked.running is None:
        return not_checked(NO_SETTINGS)
    if _has_backup_since_start(checked):
        return well("a backup was made since the start of the broker")
    return not_checked("no backup since the start of the broker; earlier ones are in its audit")


def _has_backup_since_start(checked: CheckedBroker) -> bool:
    return any(each.get("state") == "done" for each in checked.told("backup") or ())


def _last_backup(folder: Path | None) -> datetime | None:
    """Return when the last backup ended by the audit records in `folder`, None if never."""
    if folder is None or not folder.is_dir():
        return None
    last = None
    for each in records(folder, RecordChoice(action="backup.done")):
        last = datetime.strptime(str(each["at"]), "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
    return last
