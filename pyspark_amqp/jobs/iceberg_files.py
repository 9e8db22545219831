"""The data files of an archive's Iceberg tables: the archive's own files, or copies of them.

A table in the archive's own catalog has the files of the archive, as a table that was migrated from
Hive has Hive's. They lack the columns of their folders and Iceberg's ids of columns. By Iceberg's
rules of column projection, readers take the former from the partition of a file, since its
transforms are identities, and find the others by the table's mapping of names.

A table in a named catalog has copies, in the place that the catalog chooses: its readers need not
see the folder of the archive, and a copy has all columns, as Iceberg demands of files that are
written for it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, final

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
    schema_to_pyarrow,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record

from pyspark_amqp.engines.folders import folder_values
from pyspark_amqp.jobs.layout import FOLDERS, Archive

if TYPE_CHECKING:
    from pyiceberg.table import Table

ROWS_AT_ONCE: Final = 10_000


class DataFiles(Protocol):
    """The files that a table has, or is to have."""

    def location(self, file: Path) -> str:
        """Return the location of the data file of a file of the archive."""
        ...

    def has_changed(self, listed: DataFile, file: Path) -> bool:
        """Return whether the listed file was replaced by another one at the same location."""
        ...

    def made(self, file: Path) -> DataFile:
        """Return the data file of a file of the archive, which is written first if needed."""
        ...


@final
class OwnFiles:
    """The files of the archive, as those of a table.

    No bounds of columns are listed, except the values of a file's folders: a file may be replaced
    by one of the same name. Readers have the bounds in the file itself.
    """

    def __init__(
        self, archive: Archive, what: str, table: Table, *, suspect: Callable[[Path], bool]
    ):
        self._folder: Final = archive.data(what)
        self._location: Final = f"file://{self._folder.resolve()}"
        self._what: Final = what
        self._spec: Final = table.spec().spec_id
        self._suspect: Final = suspect

    def location(self, file: Path) -> str:
        return f"{self._location}/{file.relative_to(self._folder)}"

    def has_changed(self, listed: DataFile, file: Path) -> bool:
        if listed.file_size_in_bytes != file.stat().st_size:
            return True
        return self._suspect(file) and listed.record_count != pq.read_metadata(file).num_rows

    def made(self, file: Path) -> DataFile:
        folder = file.relative_to(self._folder).parent
        return _data_file(
            *(self._what, folder),
            location=self.location(file),
            size=file.stat().st_size,
            spec=self._spec,
            record_count=pq.read_metadata(file).num_rows,
        )


@final
class CopiedFiles:
    """Copies of the files of the archive, which are never changed: the name has the file's state.

    If a job was killed before it has listed a copy, the next one writes it again.
    """

    def __init__(self, archive: Archive, what: str, table: Table):
        self._folder: Final = archive.data(what)
        self._what: Final = what
        self._table: Final = table
        self._schema: Final[pa.Schema] = schema_to_pyarrow(table.schema())

    def location(self, file: Path) -> str:
        stat = file.stat()
        name = f"{file.stem}-{stat.st_size:x}-{stat.st_mtime_ns:x}.parquet"
        place: str = self._table.location_provider().new_data_location(name)
        return place

    def has_changed(self, listed: DataFile, file: Path) -> bool:
        place: str = listed.file_path
        return place != self.location(file)

    def made(self, file: Path) -> DataFile:
        table, place = self._table, self.location(file)
        folder = file.relative_to(self._folder).parent
        written: list[pq.FileMetaData] = []
        with (
            pq.ParquetFile(file, coerce_int96_timestamp_unit="us") as source,
            table.io.new_output(place).create(overwrite=True) as out,
            pq.ParquetWriter(
                *(out, self._schema),
                compression="zstd",
                store_schema=False,
                metadata_collector=written,
            ) as writer,
        ):
            for batch in source.iter_batches(ROWS_AT_ONCE):
                writer.write_batch(_complete(batch, folder, self._schema))
        statistics = data_file_statistics_from_parquet_metadata(
            parquet_metadata=written[0],
            stats_columns=compute_statistics_plan(table.schema(), table.properties),
            parquet_column_mapping=parquet_path_to_id_mapping(table.schema()),
        )
        return _data_file(
            *(self._what, folder),
            location=place,
            size=len(table.io.new_input(place)),
            spec=table.spec().spec_id,
            **statistics.to_serialized_dict(),
        )


def _data_file(
    what: str, folder: Path, *, location: str, size: int, spec: int, **told: object
) -> DataFile:
    """Return the data file at `location`; `told` has its rows, and statistics if there are any."""
    values = folder_values(folder)
    made = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=location,
        file_format=FileFormat.PARQUET,
        partition=Record(*(values[name] for name in FOLDERS[what])),
        file_size_in_bytes=size,
        **told,
    )
    made.spec_id = spec
    return made


def _complete(batch: pa.RecordBatch, folder: Path, schema: pa.Schema) -> pa.RecordBatch:
    """Return `batch` with the columns of its folder, and null for others that it lacks."""
    values = folder_values(folder)
    columns = [
        batch.column(field.name).cast(field.type)
        if field.name in batch.schema.names
        else pa.repeat(pa.scalar(values.get(field.name), field.type), batch.num_rows)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
