"""The checks of the audit by name, and the form of a message that violates one.

Pure functions from frames to frames.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from pyspark_amqp.jobs.lives import KEY

LOSS: Final = "no loss"
DUPLICATE: Final = "no duplicate"
EARLY: Final = "not early"
ORDER: Final = "order"
EXCLUSIVE: Final = "exclusive"
FIRST: Final = "given first"
HOLDER: Final = "by its holder"
DEAD_LETTER: Final = "dead letter"
RECORDED: Final = "recorded"
WHOLE: Final = "no hole"
CHECKS: Final = (
    *(LOSS, DUPLICATE, EARLY, ORDER, EXCLUSIVE),
    *(FIRST, HOLDER, DEAD_LETTER, RECORDED, WHOLE),
)


def broken(check: Column | str, found: DataFrame, id_: str, detail: Column) -> DataFrame:
    """Return messages that violate `check`; `id` is of the row that shows it."""
    name = F.lit(check) if isinstance(check, str) else check
    return found.select(name.alias("check"), *KEY, F.col(id_).alias("id"), detail.alias("detail"))


def with_rows(found: DataFrame, events: DataFrame) -> DataFrame:
    """Return messages that violate a check, with the time and text of the row that shows it."""
    rows = events.select(
        "id", "at", F.trim(F.concat_ws(" ", "kind", "consumer", "link")).alias("row")
    )
    detail = F.concat("detail", F.lit(" ("), "row", F.lit(")"))
    return found.join(rows, "id").select("check", *KEY, "id", "at", detail.alias("detail"))
