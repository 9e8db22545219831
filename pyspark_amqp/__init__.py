"""Messages and the broker's event log as tables of Apache Spark: the data source `amqp`, and jobs.

Spark imports every top-level package named `pyspark_*` and takes its `DefaultSource`. That class is
imported at its first use: the command line imports this package where Spark is not installed.
Of the broker this package knows the JMS mapping and the codec, of its storage the names of the
event log's columns. The broker knows nothing of this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark_amqp.default_source import DefaultSource

__all__ = ["DefaultSource"]


def __getattr__(name: str) -> type[DefaultSource]:
    """Return the data source `amqp`. Raises AttributeError for any other name (PEP 562)."""
    if name != "DefaultSource":
        raise AttributeError(f"module {__name__} has no attribute {name}")
    from pyspark_amqp.default_source import DefaultSource

    return DefaultSource
