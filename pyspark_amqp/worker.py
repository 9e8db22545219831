"""What a worker process of Spark's is spared."""

from __future__ import annotations

import gc
from functools import cache


@cache
def keep_what_is_loaded() -> None:
    """What this process has loaded by now is looked through for cycles no more.

    Spark has all of it looked through behind each task, which takes as long as some thousand rows.
    """
    gc.collect()
    gc.freeze()
