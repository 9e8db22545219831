"""The error of the mapping."""

from __future__ import annotations


class MappingError(ValueError):
    """A value for which the mapping has no counterpart, or a malformed message."""
