"""The settings of the audit: `[audit]`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from broker.setting_types import Count, Number

FILE_BYTES_MIN: Final = 64 * 1024
"""Minimum bytes of one file: eight of the largest records."""


class AuditSettings(BaseModel):
    """The audit records. `enabled` None: they are written if there is a place for them.

    `messages` are patterns of queues whose single messages are recorded, such as `queue:hr.#`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool | None = None
    directory: Path | None = None
    file_bytes: Annotated[Number, Field(ge=FILE_BYTES_MIN, le=2**53)] = 16 * 1024 * 1024
    total_bytes: Count = 256 * 1024 * 1024
    retention_days: Annotated[Number, Field(ge=0, le=36_500)] = 90
    messages: tuple[str, ...] = ()

    def is_chosen(self) -> bool:
        """Return whether the operator has decided on audit records, for them or against them."""
        return self.enabled is not None or self.directory is not None
