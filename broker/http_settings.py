"""The settings of the HTTP server: `[http]`."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from broker.setting_types import UINT_MAX, FilePath, Number


class HttpSettings(BaseModel):
    """The settings of the HTTP server (`broker/http`), which is off without a `port`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    port: Annotated[Number, Field(ge=0, le=65535)] | None = None
    tls: bool = False
    api: bool = True
    arrow: bool = True
    console: bool | None = None
    audit_report: FilePath | None = None
    jms: bool = False
    metrics: bool = True
    streams_max: Annotated[Number, Field(ge=1, le=10_000)] = 64
    head_bytes_max: Annotated[Number, Field(ge=1024, le=1024 * 1024)] = 16 * 1024
    silence_max_ms: Annotated[Number, Field(ge=1, le=UINT_MAX)] = 60_000
