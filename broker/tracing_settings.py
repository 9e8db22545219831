"""The settings of traces: `[tracing]`."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, HttpUrl, field_validator

SERVICE_NAME = "jms-broker"


class TracingSettings(BaseModel):
    """The collector that gets the spans of traced messages. Without `endpoint` there are none."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    endpoint: HttpUrl | None = None
    service_name: Annotated[str, Field(min_length=1, max_length=255)] = SERVICE_NAME

    @field_validator("endpoint")
    @classmethod
    def _has_no_password(cls, endpoint: HttpUrl | None) -> HttpUrl | None:
        # `config show` and the bundle of `doctor` show the URL
        if endpoint is not None and (endpoint.username or endpoint.password):
            raise ValueError(
                "a URL without a user and a password: set the variable OTEL_EXPORTER_OTLP_HEADERS"
            )
        return endpoint
