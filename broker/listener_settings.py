"""The settings of a listener, one of the addresses at which the broker accepts connections."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from broker.setting_types import Number
from broker.tls_settings import TlsSettings

AMQPS: Final = "amqps"
"""The kind of a listener that speaks TLS."""

FIRST: Final = "amqp"
"""The name of the listener that the settings `bind` and `port` describe."""


class ListenerSettings(BaseModel):
    """The settings of one listener."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9._-]+$")]
    kind: Literal["amqp", "amqps"] = "amqp"
    bind: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    port: Annotated[Number, Field(ge=0, le=65535)]
    tls: TlsSettings | None = None

    @model_validator(mode="after")
    def _tls_fits_the_kind(self) -> ListenerSettings:
        if self.tls is not None and self.kind != AMQPS:
            raise ValueError(f"listener {self.name!r} has a table tls: set kind to {AMQPS!r}, too")
        return self

    def url(self, port: int) -> str:
        """Return the URL of this listener once it listens on `port`."""
        host = f"[{self.bind}]" if ":" in self.bind else self.bind
        return f"{self.kind}://{host}:{port}"
