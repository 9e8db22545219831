"""Why a message cannot be converted."""

from __future__ import annotations


class MappingError(ValueError):
    """A value that the mapping has no counterpart for, or a message that is malformed."""
