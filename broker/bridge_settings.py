"""The settings of bridges to other brokers: `[[bridge]]`."""

from __future__ import annotations

from typing import Annotated, Final, Literal
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from broker.setting_types import FilePath, Number
from broker.tls_settings import PemFile

BRIDGES_MAX: Final = 64
"""Maximum bridges of a broker: each has a task, a connection, and up to 16 MiB of messages."""

BATCH_MAX: Final = 2000
"""Maximum messages of a batch: each broker commits or settles one in a step of less than 5 ms."""

NAME: Final = r"^[A-Za-z0-9._-]+$"

AMQP: Final = "amqp"
AMQPS: Final = "amqps"
PORTS: Final = {AMQP: 5672, AMQPS: 5671}

COPY: Final = "copy"


def _url(value: str) -> str:
    """Raise ValueError unless `value` is amqp://HOST[:PORT] or amqps://HOST[:PORT]."""
    try:
        parts = urlsplit(value)
        is_whole = bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_whole = False
        parts = SplitResult("", "", "", "", "")
    if not is_whole or parts.scheme not in PORTS:
        raise ValueError("Input should be amqp://HOST:PORT or amqps://HOST:PORT")
    if "@" in parts.netloc:
        raise ValueError(
            "Input should be a URL without a user: set credentials_file to a file with"
            " USER:PASSWORD"
        )
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise ValueError("Input should be a URL without a path: set `to` to the address")
    return value


class BridgeTlsSettings(BaseModel):
    """The table `tls` of a bridge. Without `ca` the authorities of this machine are trusted."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ca: PemFile | None = None
    certificate: PemFile | None = None
    key: PemFile | None = None

    @model_validator(mode="after")
    def _certificate_has_key(self) -> BridgeTlsSettings:
        if (self.certificate is None) != (self.key is None):
            raise ValueError("certificate and key belong together: set both, or none of them")
        return self


class BridgeSettings(BaseModel):
    """One bridge: it takes messages `from` a node of this broker, and sends them `to` one at `url`.

    `batch` is the maximum number of messages that are moved at a time.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    name: Annotated[str, Field(min_length=1, max_length=64, pattern=NAME)]
    source: Annotated[str, Field(alias="from", min_length=1, max_length=1024)]
    to: Annotated[str, Field(min_length=1, max_length=1024)]
    url: Annotated[str, AfterValidator(_url)]
    credentials_file: FilePath | None = None
    tls: BridgeTlsSettings | None = None
    batch: Annotated[Number, Field(ge=1, le=BATCH_MAX)] = 1000
    selector: Annotated[str, Field(max_length=4096)] = ""
    keep: Literal["move", "copy"] = "move"

    @model_validator(mode="after")
    def _tls_fits_the_url(self) -> BridgeSettings:
        if self.tls is not None and not self.is_encrypted:
            raise ValueError(f"bridge {self.name!r} has a table tls: set url to {AMQPS}://, too")
        return self

    @classmethod
    def keys(cls) -> list[str]:
        """Return the keys of the table: `source` has the name `from` there."""
        return [field.alias or name for name, field in cls.model_fields.items()]

    @property
    def is_encrypted(self) -> bool:
        """Whether the bridge speaks TLS."""
        return urlsplit(self.url).scheme == AMQPS

    @property
    def place(self) -> tuple[str, int]:
        """The host and the port of the other broker."""
        parts = urlsplit(self.url)
        return parts.hostname or "", parts.port or PORTS[parts.scheme]


def _differ(bridges: tuple[BridgeSettings, ...]) -> tuple[BridgeSettings, ...]:
    """Raise ValueError if two of `bridges` have one name."""
    names = [bridge.name for bridge in bridges]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"there is more than one [[bridge]] of the name {twice[0]!r}")
    return bridges


BridgeTables = Annotated[
    tuple[BridgeSettings, ...], Field(max_length=BRIDGES_MAX), AfterValidator(_differ)
]
"""All `[[bridge]]` of the settings."""
