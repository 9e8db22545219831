"""The settings of drains: `[drain]`."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from broker.setting_types import Uint


class DrainSettings(BaseModel):
    """How a broker drains before it stops. `on_sigterm`: SIGTERM drains it, else it stops at once.

    Off by default: service managers that were not told to wait kill after 10 seconds.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    on_sigterm: bool = False
    announce_ms: Uint = 5000
    timeout_ms: Uint = 20_000
