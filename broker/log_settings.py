"""The settings of the log: `[log]`."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict


class LogSettings(BaseModel):
    """The settings of the log."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["console", "json"] = "console"
    level: Literal["debug", "info", "warning", "error"] = "info"
