"""Savings of time in Spark's Python worker processes."""

from __future__ import annotations

import gc
from functools import cache


@cache
def keep_what_is_loaded() -> None:
    """Freeze loaded objects so that the garbage collector skips them (gc.freeze).

    Spark runs a full collection after each task, which takes as long as some thousand rows.
    """
    gc.collect()
    gc.freeze()
