"""The class by which Spark knows the data source `amqp`.

Every session imports it when it first looks up a source, so all other modules, except the small
`one_line`, are imported only if this source is used.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSource

from pyspark_amqp.one_line import one_line_errors

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType


@one_line_errors("__init__", "schema", "reader", "streamReader", "writer", "streamWriter")
class DefaultSource(DataSource):
    """The data source `amqp`; `docs/spark/data-source.md` has its options and columns."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        from pyspark_amqp import data_source

        super().__init__(options)
        self._given: Final = dict(options)
        data_source.check(self._given)

    @classmethod
    def name(cls) -> str:
        return "amqp"

    def schema(self) -> str:
        from pyspark_amqp import data_source

        return data_source.schema(self._given)

    def reader(self, schema: StructType) -> DataSourceReader:
        from pyspark_amqp import data_source

        return data_source.reader(self._given, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from pyspark_amqp import data_source

        return data_source.stream_reader(self._given, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001 - Spark's
        from pyspark_amqp import data_source

        return data_source.writer(self._given, schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: FBT001
        from pyspark_amqp import data_source

        return data_source.stream_writer(self._given, schema, overwrite=overwrite)
