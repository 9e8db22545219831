"""Folders of what the tests fetch or build once, for all checkouts of a user."""

from __future__ import annotations

import os
from pathlib import Path


def user_cache(name: str) -> Path:
    """Return the folder `name` among the user's caches, as the XDG specification places them."""
    caches = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # a relative path is to be ignored, as the specification says
    return (caches if caches.is_absolute() else Path.home() / ".cache") / name
