"""The Iceberg tables of an archive: one of messages, and one of the event log.

A table has the rows of the archive's files. After each batch it is compared with the files, and one
snapshot adds what is new and removes what is gone. So a batch that is repeated replaces its own
files, and if a job was killed between the files and the snapshot, the next one does the rest: each
row is in the table once. The summary of a snapshot names the query and the batch.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, ValidationException
from pyiceberg.manifest import DataFileContent
from pyiceberg.table import TableProperties

from pyspark_amqp.engines.engine import EPOCH
from pyspark_amqp.jobs.iceberg_catalog import (
    ARCHIVE_ID,
    TablePlace,
    check_is_of,
    opened,
    record,
    recorded,
    requested,
)
from pyspark_amqp.jobs.iceberg_files import CopiedFiles, DataFiles, OwnFiles
from pyspark_amqp.jobs.layout import (
    COLUMNS,
    FOLDERS,
    Archive,
    ArchiveError,
    last_batches,
    may_come_again,
)
from pyspark_amqp.rows.columns import schema_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from pyiceberg.catalog import Catalog
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table

    from pyspark_amqp.jobs.archive import BatchName

QUERY: Final = "jms-broker.query"
BATCH: Final = "jms-broker.batch"

ATTEMPTS: Final = 5
"""How often a table is compared with the files, if other programs commit to it meanwhile.

In each attempt pyiceberg tries to commit as often as `commit.retry.num-retries` says, by default
five times.
"""

SNAPSHOTS_KEPT: Final = 20
"""Snapshots of a table in the archive's own catalog that are kept; twice as many before a purge."""

MERGING: Final = {
    TableProperties.MANIFEST_MERGE_ENABLED: "true",
    TableProperties.MANIFEST_MIN_MERGE_COUNT: "10",
}
"""Properties of all tables. Without them each batch leaves a manifest, which each commit reads."""

OWN_PROPERTIES: Final = {
    TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED: "true",
    TableProperties.METADATA_PREVIOUS_VERSIONS_MAX: "10",
}


@dataclass(frozen=True)
class _Target:
    """The table of one part of an archive, which has to follow its files."""

    archive: Archive
    what: str
    place: TablePlace

    @property
    def is_own(self) -> bool:
        """Return whether the table is in the archive's own catalog."""
        return self.place.catalog is None

    @property
    def identifier(self) -> tuple[str, ...]:
        return self.place.identifier(self.what)

    @property
    def named(self) -> str:
        return self.place.named(self.what)

    @property
    def metadata(self) -> Path:
        """Return the folder of the table's metadata, if it is in the archive's own catalog."""
        return self.archive.iceberg_data(self.what)


def begin(
    archive: Archive, what: str, *, catalog: str | None = None, namespace: str | None = None
) -> None:
    """Make the table of `what` if there is none, and list all files of the archive in it."""
    with archive.locked():
        place = requested(archive, what, catalog=catalog, namespace=namespace)
        # recorded before the table is made, so that no table of the archive is unknown to it
        record(archive, what, place)
        update(archive, what)


def update(archive: Archive, what: str, batch: BatchName | None = None) -> None:
    """Bring the table of `what` to the rows of the files, by one snapshot.

    `batch` is the one whose files have changed. The archive must be `locked`. Raise ArchiveError if
    other programs have changed the table each time before the commit.
    """
    place = recorded(archive, what)
    assert place is not None
    with opened(archive, place) as catalog:
        target = _here(catalog, _Target(archive, what, place))
        _equalize(catalog, target, batch)
        if target.is_own:
            _purge(catalog.load_table(target.identifier), target.metadata)


def _equalize(catalog: Catalog, target: _Target, batch: BatchName | None) -> None:
    """Commit what the table lacks; compare anew if another program has committed meanwhile."""
    for attempt in range(1, ATTEMPTS + 1):
        table = _table(catalog, target)
        try:
            return _commit(table, _difference(table, target, batch), batch)
        except (CommitFailedException, ValidationException) as error:
            if attempt == ATTEMPTS:
                raise ArchiveError(
                    f"{target.named} is changed by other programs all the time ({error}): the"
                    " files are in the archive, and the next run adds them to the table"
                ) from error
    return None


def _here(catalog: Catalog, target: _Target) -> _Target:
    """Return the target with the archive's folder of today, which may have been moved.

    Locations are absolute: the table in the archive's own catalog is then made anew.
    """
    root = str(target.archive.root.resolve())
    if target.place.root == root:
        return target
    if target.is_own:
        with suppress(NoSuchTableError):
            catalog.drop_table(target.identifier)
        shutil.rmtree(target.metadata, ignore_errors=True)
    moved = replace(target.place, root=root)
    record(target.archive, target.what, moved)
    return replace(target, place=moved)


def _table(catalog: Catalog, target: _Target) -> Table:
    """Return the table, with all columns; it is made if there is none."""
    try:
        table = catalog.load_table(target.identifier)
    except NoSuchTableError:
        _create(catalog, target)
        table = catalog.load_table(target.identifier)
    check_is_of(table, target.place, target.what)
    schema = _schema(target.what)
    if not {*schema.names} <= {field.name for field in table.schema().fields}:
        # an earlier version has made the table, when the archive had fewer columns
        with table.update_schema() as change:
            change.union_by_name(schema)
    return table


def _schema(what: str) -> pa.Schema:
    return schema_of({"date": "STRING", **COLUMNS[what]})


def _create(catalog: Catalog, target: _Target) -> None:
    """Make the table without rows; raise ArchiveError if the catalog refuses its name."""
    properties = {ARCHIVE_ID: target.place.archive, **MERGING}
    location = None
    if target.is_own:
        properties |= OWN_PROPERTIES
        location = f"file://{target.metadata.resolve()}"
    try:
        catalog.create_namespace_if_not_exists(target.identifier[:-1])
        creation = catalog.create_table_transaction(
            target.identifier, _schema(target.what), location=location, properties=properties
        )
    except ValueError as error:
        # a namespace of two levels, for example, which catalogs of SQL do not have
        raise ArchiveError(f"{target.named} cannot be made: {error}") from error
    with creation as transaction:
        with transaction.update_spec() as spec:
            for name in FOLDERS[target.what]:
                spec.add_identity(name)
        if target.is_own:
            names = transaction.table_metadata.schema().name_mapping.model_dump_json()
            transaction.set_properties({TableProperties.DEFAULT_NAME_MAPPING: names})


@dataclass(frozen=True)
class _Difference:
    """The data files that a snapshot removes and adds."""

    gone: Sequence[DataFile]
    new: Sequence[DataFile]


def _difference(table: Table, target: _Target, batch: BatchName | None) -> _Difference:
    """Return how the files of the archive differ from those that the table has."""
    archive, what = target.archive, target.what
    there = archive.files(what)
    files: DataFiles
    if target.is_own:
        files = OwnFiles(archive, what, table, suspect=_suspect(there, batch))
    else:
        files = CopiedFiles(archive, what, table)
    meant = {files.location(file): file for file in there}
    listed = _listed(table)
    gone = {
        path: data
        for path, data in listed.items()
        if path not in meant or files.has_changed(data, meant[path])
    }
    new = [file for path, file in meant.items() if path not in listed or path in gone]
    return _Difference(list(gone.values()), [files.made(file) for file in new])


def _listed(table: Table) -> dict[str, DataFile]:
    """Return the data files in the table's newest snapshot, by their locations."""
    snapshot = table.current_snapshot()
    manifests = [] if snapshot is None else snapshot.manifests(table.io)
    # not by a scan, which judges each file for a filter
    entries = (entry for each in manifests for entry in each.fetch_manifest_entry(table.io))
    files = [entry.data_file for entry in entries]
    return {file.file_path: file for file in files if file.content == DataFileContent.DATA}


def _suspect(there: Sequence[Path], batch: BatchName | None) -> Callable[[Path], bool]:
    """Return the test of whether a file may have been replaced since it was listed."""
    if batch is None:
        last = last_batches(there)
        return lambda file: may_come_again(file, last)
    return lambda file: file.match(batch.file("*"))


def _commit(table: Table, found: _Difference, batch: BatchName | None) -> None:
    if not found.gone and not found.new:
        return
    told = {} if batch is None else {QUERY: batch.query, BATCH: str(batch.number)}
    with table.transaction() as transaction:
        update = transaction.update_snapshot(snapshot_properties=told)
        with update.overwrite() if found.gone else update.merge_append() as snapshot:
            for data in found.gone:
                snapshot.delete_data_file(data)
            for data in found.new:
                snapshot.append_data_file(data)


def _purge(table: Table, folder: Path) -> None:
    """Expire old snapshots of a table in the archive's own catalog, and delete their files.

    Otherwise an archive with a batch each 30 seconds would have a million files in a year, and each
    commit would write the list of all snapshots. The archive must be `locked`.
    """
    snapshots = table.snapshots()
    if len(snapshots) < 2 * SNAPSHOTS_KEPT:
        return
    oldest = EPOCH + timedelta(milliseconds=snapshots[-SNAPSHOTS_KEPT].timestamp_ms)
    table.maintenance.expire_snapshots().older_than(oldest).commit()
    table.refresh()
    used = {table.metadata_location, *(each.metadata_file for each in table.metadata.metadata_log)}
    for snapshot in table.snapshots():
        used.add(snapshot.manifest_list)
        used.update(manifest.manifest_path for manifest in snapshot.manifests(table.io))
    names = {location.rpartition("/")[2] for location in used}
    for file in (folder / "metadata").iterdir():
        if file.name not in names:
            file.unlink()
