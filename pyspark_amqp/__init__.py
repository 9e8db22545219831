"""Messages and the broker's event log as tables of Apache Spark: the data source `amqp`, and jobs.

Spark imports every top-level package named `pyspark_*` and takes its `DefaultSource`. That class is
imported only at its first use, because the command line imports this package even if Spark is not
installed. The data source uses the broker's JMS mapping and codec, and the storage's names of the
event log's columns. In the broker, only the command line imports this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark_amqp.default_source import DefaultSource

__all__ = ["DefaultSource"]


def __getattr__(name: str) -> type[DefaultSource]:
    """Return the data source `amqp`; raise AttributeError for any other name (PEP 562)."""
    if name != "DefaultSource":
        raise AttributeError(f"module {__name__} has no attribute {name}")
    from pyspark_amqp.default_source import DefaultSource

    return DefaultSource
