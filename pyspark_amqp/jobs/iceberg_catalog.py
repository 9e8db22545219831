"""The catalog that has the Iceberg tables of an archive: one in its folder, or a named one.

Without a name it is pyiceberg's catalog in a file of SQLite, `_iceberg/catalog.db`, which needs no
server. A name is that of a catalog in pyiceberg's configuration: REST, Glue, Hive, or SQL.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError
from sqlalchemy.engine import URL

from pyspark_amqp.jobs.layout import Archive, ArchiveError, write_durably

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

OWN_CATALOG: Final = "archive"
"""The name of the catalog in an archive's folder."""

NAMESPACE: Final = "archive"
"""The namespace of the tables, if none is requested."""

ARCHIVE_ID: Final = "jms-broker.archive"
"""The property of a table that names its archive: no other archive may change the table."""

NOT_IN_PLACES: Final = "#?"
"""Characters that end the path in a location of Iceberg, which is a URI."""


@dataclass(frozen=True)
class TablePlace:
    """The place of one table of an archive, as the archive records it.

    `catalog` is a name in pyiceberg's configuration, None for the archive's own catalog. `archive`
    identifies the archive; `root` is its folder.
    """

    catalog: str | None
    namespace: str
    archive: str
    root: str

    def identifier(self, what: str) -> tuple[str, ...]:
        """Return the name of the table of `what`, with the levels of the namespace before it."""
        return (*self.namespace.split("."), what)

    def named(self, what: str) -> str:
        """Return the words by which an error names the table of `what`."""
        where = "of the archive" if self.catalog is None else self.catalog
        return f"the Iceberg table {'.'.join(self.identifier(what))} in the catalog {where}"


def recorded(archive: Archive, what: str) -> TablePlace | None:
    """Return the recorded place of the table of `what`; None if there is no table."""
    try:
        return TablePlace(**json.loads(archive.iceberg_record(what).read_text()))
    except FileNotFoundError:
        return None


def record(archive: Archive, what: str, place: TablePlace) -> None:
    """Record the place of the table of `what`; it is on the disk when this returns."""
    write_durably(archive.iceberg_record(what), json.dumps(asdict(place)))


def requested(
    archive: Archive, what: str, *, catalog: str | None, namespace: str | None
) -> TablePlace:
    """Return the place of the table of `what`: the recorded one, or a new one as requested.

    Raise ArchiveError if another place than the recorded one is requested.
    """
    known = recorded(archive, what)
    if known is None:
        root = str(archive.root.resolve())
        return TablePlace(catalog, namespace or NAMESPACE, uuid4().hex, root)
    if catalog not in {None, known.catalog} or namespace not in {None, known.namespace}:
        raise ArchiveError(
            f"{archive.root} has {known.named(what)}: leave out --catalog and --namespace, or"
            " archive into another folder"
        )
    return known


def check(
    archive: Archive, whats: Iterable[str], *, catalog: str | None, namespace: str | None
) -> None:
    """Raise ArchiveError if the tables cannot be there: no such catalog, or tables of others."""
    for what in whats:
        place = requested(archive, what, catalog=catalog, namespace=namespace)
        if place.catalog is None:
            _check_path(archive)
            continue
        with opened(archive, place) as found:
            try:
                table = found.load_table(place.identifier(what))
            except NoSuchTableError:
                continue
            check_is_of(table, place, what)


def check_is_of(table: Table, place: TablePlace, what: str) -> None:
    """Raise ArchiveError if a table was not made for the archive: its rows would be removed."""
    if table.properties.get(ARCHIVE_ID) != place.archive:
        raise ArchiveError(
            f"{place.named(what)} is not of the archive {place.root}: choose another --namespace"
        )


def _check_path(archive: Archive) -> None:
    root = str(archive.root.resolve())
    if bad := [each for each in NOT_IN_PLACES if each in root]:
        raise ArchiveError(f"{root} has {bad[0]} in its name, which a table of Iceberg cannot have")


@contextmanager
def opened(archive: Archive, place: TablePlace) -> Iterator[Catalog]:
    """Open the catalog of a table for the block; raise ArchiveError if it cannot be opened."""
    with _own(archive) if place.catalog is None else _configured(place.catalog) as catalog:
        yield catalog


def _own(archive: Archive) -> Catalog:
    folder = archive.iceberg.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    uri = URL.create("sqlite", database=str(folder / "catalog.db"))
    return SqlCatalog(OWN_CATALOG, uri=uri.render_as_string(), warehouse=f"file://{folder}")


def _configured(name: str) -> Catalog:
    try:
        return load_catalog(name)
    except Exception as error:
        # each kind of catalog has errors of its own
        raise ArchiveError(
            f"the catalog {name} cannot be opened ({error}): see .pyiceberg.yaml, or the variables"
            f" PYICEBERG_CATALOG__{name.upper()}__URI and so on"
        ) from error
