"""The settings of a broker: their sources, their types, and the errors of wrong ones.

The only reader of configuration. Later sources win: the defaults here, the TOML file, those of
`conf.d` beside it, environment variables `JMS_BROKER_<NAME>`, the command line. A setting that is
unknown or bad stops the start; nothing is guessed.
`config/broker.toml` shows every setting; a test holds the two together.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import (
    BaseModel,
    Field,
    PrivateAttr,
    SecretStr,
    ValidationError,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_settings import (
    EnvSettingsSource,
    InitSettingsSource,
    SettingsConfigDict,
)
from pydantic_settings import SettingsError as UnreadableVariable

from broker.address_settings import AddressSettings, GeneralAddressSettings, NodeSettings
from broker.audit_settings import AuditSettings
from broker.bridge_settings import BridgeSettings, BridgeTables
from broker.drain_settings import DrainSettings
from broker.ha_settings import HaSettings
from broker.http_settings import HttpSettings
from broker.listener_settings import FIRST, ListenerSettings
from broker.log_settings import LogSettings
from broker.machine import LEAST, default_memory_max
from broker.oauth_settings import OauthSettings
from broker.setting_types import MEMORY as MEMORY  # for those that have the settings
from broker.setting_types import POSTGRESQL as POSTGRESQL
from broker.setting_types import SQLITE as SQLITE
from broker.setting_types import UINT_MAX, Ballast, Count, FilePath, Number, StoreUrl, Uint
from broker.settings_errors import (
    ENVIRONMENT_PREFIX,
    FILE_SUFFIX,
    Places,
    complaints,
    shown,
    unknown,
)
from broker.settings_files import UnreadableFile, WrittenSettings, read_files, secrets_of
from broker.shard_settings import SUPERVISED, ShardSettings, refuse_collisions
from broker.tls_settings import TlsSettings
from broker.tracing_settings import TracingSettings

OTHER_VARIABLES: Final = frozenset(
    {
        *("JMS_BROKER_CONFIG", "JMS_BROKER_URL", "JMS_BROKER_CA", "JMS_BROKER_CERT"),
        *("JMS_BROKER_KEY", "JMS_BROKER_TOKEN", "JMS_BROKER_CONFORMANCE_PASSWORD", SUPERVISED),
    }
)
"""Variables of the command line that are no settings: the settings file, a broker's URL with the
files for TLS and the token, the password of `conformance`, and SUPERVISED."""

DEFAULT_STORE: Final = f"{SQLITE}data/store.db"
"""The store of a broker that is a process of its own; embedded brokers use memory."""
ADOPT: Final = "adopt"
"""The value of `ownership` by which a subscription without an owner gets one."""


class SettingsError(ValueError):
    """Raised for settings that the broker must not start with; the text says what to change."""


Prefix = Literal["queue://", "topic://", "temp-queue://", "temp-topic://"]
PREFIXES: Final[tuple[Prefix, ...]] = ("queue://", "topic://", "temp-queue://", "temp-topic://")


AUDIT_SUFFIX: Final = ".audit"
"""End of the name of the folder with audit records; it begins with the path of the store."""


class Settings(GeneralAddressSettings):
    """All settings. Times are milliseconds, sizes are bytes, 0 is "no limit"."""

    model_config = SettingsConfigDict(
        env_prefix=ENVIRONMENT_PREFIX,
        # JMS_BROKER_LOG_LEVEL is log.level; split once, as names contain underscores themselves
        env_nested_delimiter="_",
        env_nested_max_split=1,
        extra="forbid",
        frozen=True,
    )

    # the listening socket
    bind: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    port: Annotated[Number, Field(ge=0, le=65535)] = 5672

    listener: tuple[ListenerSettings, ...] = ()
    tls: TlsSettings | None = None

    # the store of messages
    store: StoreUrl = DEFAULT_STORE
    hold_ms: Annotated[Number, Field(ge=0, le=1000)] = 2
    store_loss_grace_ms: Annotated[Number, Field(ge=0, le=UINT_MAX)] = 30_000
    disk_free_min: Count = 256 * 1024 * 1024
    disk_ballast: Ballast = 16 * 1024 * 1024

    # how much memory messages and connections may take; None: a quarter of what there is
    memory_max: Annotated[Number, Field(ge=LEAST, le=2**53)] | None = None

    # logins
    users_file: FilePath = Path("jms-broker.users")
    allow_anonymous: bool | None = None
    plain: Literal["protected", "always"] = "protected"
    user: str | None = None
    password: SecretStr | None = None
    password_file: FilePath | None = None

    oauth: OauthSettings | None = None
    authenticator: Annotated[str, Field(min_length=1)] | None = None

    # rights and limits of users; None: the rules of the built-in roles
    acl_file: FilePath | None = None
    ownership: Literal["adopt", "strict"] = ADOPT

    # how many may connect, and how many of them without a login
    connections_max: Count = 20_000
    unauthenticated_max: Count = 5000
    unauthenticated_source_max: Count = 100
    limit_loopback: bool = True

    # limits of a connection that peers are told (core spec 2.7.1 and 2.7.2)
    max_frame_size: Annotated[Number, Field(ge=512, le=2**31 - 1)] = 1024 * 1024
    channel_max: Annotated[Number, Field(ge=0, le=65535)] = 1023
    handle_max: Uint = 4095
    incoming_window: Annotated[Number, Field(ge=1, le=2**31 - 1)] = 2048
    max_message_size: Annotated[Number, Field(ge=1, le=2**31 - 1)] = 128 * 1024 * 1024
    partial_bytes_max: Annotated[Number, Field(ge=1, le=2**53)] = 256 * 1024 * 1024
    idle_time_out_ms: Uint = 60_000
    handshake_timeout_ms: Annotated[Number, Field(ge=1, le=UINT_MAX)] = 10_000
    stall_timeout_ms: Uint = 60_000

    # how much a transaction may hold, and for how long
    transactions_max: Count = 1024
    transaction_operations_max: Count = 100_000
    transaction_bytes_max: Count = 64 * 1024 * 1024
    transaction_timeout_ms: Uint = 300_000

    # how producers are held to the pace of consumers
    credit: Annotated[Number, Field(ge=1, le=2**31 - 1)] = 500
    pacing_backlog: Count = 2000
    paging_window: Count = 1024

    # how long unsettled deliveries wait for a link that resumes them
    resume_max_s: Annotated[Number, Field(ge=0, le=86_400)] = 300

    # how long subscribers of durable and transient topics may take to come back
    connection_loss_grace_ms: Uint = 60_000

    # how much of the event log is kept
    event_log_max_events: Count = 1_000_000
    event_log_max_age_ms: Count = 7 * 24 * 3600 * 1000

    # how long what a sink has staged is kept without a commit
    stage_retention_s: Uint = 24 * 3600

    # addresses; the settings that can differ between them are GeneralAddressSettings'
    default_kind: Literal["queue", "topic"] = "queue"
    address_prefixes: list[Prefix] = Field(default_factory=lambda: list(PREFIXES))
    auto_create_max: Annotated[Number, Field(ge=0, lt=100_000)] = 50_000

    bridge: BridgeTables = ()
    shard: tuple[ShardSettings, ...] = ()
    _shard_name: str = PrivateAttr("")

    ha: HaSettings = HaSettings()
    http: HttpSettings = HttpSettings()
    audit: AuditSettings = AuditSettings()
    drain: DrainSettings = DrainSettings()
    tracing: TracingSettings = TracingSettings()
    log: LogSettings = LogSettings()
    address: tuple[AddressSettings, ...] = ()
    queue: tuple[NodeSettings, ...] = ()
    topic: tuple[NodeSettings, ...] = ()

    @model_validator(mode="after")
    def _two_messages_may_be_unfinished(self) -> Settings:
        # with less, one of the largest messages could close a connection that is
        # in the middle of another: the sum ends the connection, not the link
        if self.partial_bytes_max < 2 * self.max_message_size:
            raise ValueError(
                f"partial_bytes_max = {self.partial_bytes_max}: at least twice max_message_size,"
                f" which is {self.max_message_size}"
            )
        return self

    @model_validator(mode="after")
    def _nodes_are_declared_once(self) -> Settings:
        for kind, nodes in (("queue", self.queue), ("topic", self.topic)):
            names = [node.name for node in nodes]
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(f"there is more than one [[{kind}]] of the name {twice[0]!r}")
        return self

    @model_validator(mode="after")
    def _listeners_differ(self) -> Settings:
        names = [listener.name for listener in self.listeners()]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            also = ", which bind and port describe," if twice[0] == FIRST else ""
            raise ValueError(f"there is more than one listener of the name {twice[0]!r}{also}")
        return self

    @model_validator(mode="after")
    def _http_has_certificates(self) -> Settings:
        if self.http.tls and self.tls is None:
            raise ValueError(
                "http.tls = true, and there is no table tls: set certificate and key in [tls]"
            )
        return self

    @model_validator(mode="after")
    def _listeners_with_tokens_have_an_issuer(self) -> Settings:
        for listener in self.listener:
            if listener.needs_tokens() and self.oauth is None:
                raise ValueError(
                    f"listener {listener.name!r} has mechanisms for tokens, and there is no table"
                    " oauth: set issuer, audience and jwks in [oauth]"
                )
        return self

    def listeners(self) -> list[ListenerSettings]:
        """Return all listeners, with their TLS; the first is that of `bind` and `port`."""
        first = ListenerSettings(name=FIRST, bind=self.bind, port=self.port)
        return [first, *(self._with_tls(listener) for listener in self.listener)]

    def _with_tls(self, listener: ListenerSettings) -> ListenerSettings:
        if not listener.is_encrypted or listener.tls is not None:
            return listener
        if self.tls is None:
            raise ValueError(
                f"listener {listener.name!r} is of kind {listener.kind}, and there is no table tls:"
                " set certificate and key in [tls], or in a table tls of the listener"
            )
        return listener.model_copy(update={"tls": self.tls})

    def audit_folder(self) -> Path | None:
        """Return the folder of the audit records; None if there are none.

        Without a folder of their own they are beside the file of an SQLite store.
        """
        if self.audit.enabled is False or self.audit.directory is not None:
            return None if self.audit.enabled is False else self.audit.directory
        if self.store.startswith(SQLITE):
            return Path(f"{self.store.removeprefix(SQLITE)}{AUDIT_SUFFIX}")
        return None

    # -- shards

    @model_validator(mode="after")
    def _shards_do_not_collide(self) -> Settings:
        for name, given in (
            ("port", "port" in self.model_fields_set),
            ("store", "store" in self.model_fields_set),
            ("http.port", self.http.port is not None),
        ):
            if self.shard and given:
                own = name.replace(".", "_")
                raise ValueError(
                    f"{name} is set, and there is a [[shard]]: remove it from the settings file,"
                    f" the environment and the command line, and set {own} of each [[shard]]"
                )
        refuse_collisions(self.shard, self.listener, self.ha)
        return self

    @property
    def shard_name(self) -> str:
        """The name of the shard that these settings are of; empty if they are of no shard."""
        return self._shard_name

    def of_shard(self, name: str | None) -> Settings:
        """Return the settings of the process of one shard; with None, of the only process.

        Raise SettingsError if there is no such shard, or none is named though there are shards.
        """
        if name is None and not self.shard:
            return self
        names = ", ".join(each.name for each in self.shard)
        for shard in self.shard:
            if shard.name == name:
                return self._as(shard)
        if not names:
            raise SettingsError(f"there is no shard {name!r}: the settings have no [[shard]]")
        if name is None:
            raise SettingsError(f"the settings have shards: name one by --shard: {names}")
        raise SettingsError(f"there is no shard {name!r}; there are {names}")

    def _as(self, shard: ShardSettings) -> Settings:
        folder = self.audit.directory
        memory_max = self.memory_max or max(LEAST, default_memory_max() // len(self.shard))
        made = self.model_copy(
            update={
                "port": shard.port,
                "store": shard.store,
                "memory_max": memory_max,
                "listener": shard.listeners(self.listener),
                "http": self.http.model_copy(update={"port": shard.http_port}),
                "ha": shard.of_group(self.ha),
                "audit": self.audit.model_copy(
                    update={"directory": None if folder is None else folder / shard.name}
                ),
            }
        )
        made._shard_name = shard.name  # noqa: SLF001 - of the same class
        return made

    def _each(self) -> list[Settings]:
        """Return the settings of each process that is started with these."""
        return [self._as(shard) for shard in self.shard] or [self]

    def other_shards(self) -> dict[str, Mapping[str, int]]:
        """Return the ports of other shards, by the name of the listener, by the shard's hosts."""
        others = [each for each in self.shard if each.name != self.shard_name]
        return {host: each.ports() for each in others for host in each.hosts}

    @model_validator(mode="after")
    def _audit_has_a_place(self) -> Settings:
        for each in self._each():
            if each.audit.enabled is True and each.audit_folder() is None:
                raise ValueError(
                    f"audit.enabled = true, and store = {shown('store', each.store)} has no folder"
                    " for the records: set audit.directory"
                )
            if each.audit.messages and each.audit_folder() is None:
                raise ValueError("audit.messages is set, and there are no audit records")
        return self

    @model_validator(mode="after")
    def _group_has_a_store(self) -> Settings:
        for each in self._each():
            if each.ha.enabled and not each.store.startswith(POSTGRESQL):
                raise ValueError(
                    f"ha.enabled = true, and store = {shown('store', each.store)}: brokers of a"
                    f" group share a store in PostgreSQL, {POSTGRESQL}USER@HOST/DATABASE"
                )
        return self

    @model_validator(mode="after")
    def _first_user_is_whole(self) -> Settings:
        passwords = [given for given in (self.password, self.password_file) if given is not None]
        if self.user is None and passwords:
            raise ValueError("there is a password, but no user: set JMS_BROKER_USER, too")
        if self.user is not None and len(passwords) != 1:
            raise ValueError(
                f"user {self.user!r} needs either JMS_BROKER_PASSWORD or JMS_BROKER_PASSWORD_FILE"
            )
        return self


class _Variables(EnvSettingsSource):
    """The environment variables; the name of a setting is never read as an entry of another one.

    Else JMS_BROKER_ADDRESS_PREFIXES would be `prefixes` of the table `address`.
    """

    def explode_env_vars(
        self, field_name: str, field: FieldInfo, env_vars: Mapping[str, str | None]
    ) -> dict[str, object]:
        own = {f"{self.env_prefix}{name}".lower() for name in Settings.model_fields}
        nested = {name: value for name, value in env_vars.items() if name.lower() not in own}
        return super().explode_env_vars(field_name, field, nested)

    def _load_env_vars(self) -> Mapping[str, str | None]:
        found = dict(super()._load_env_vars())
        secrets = secrets_of(os.environ, SECRETS)
        return found | {name.lower(): value for name, value in secrets.items()}


def load_settings(config: Path | None = None, **overrides: object) -> Settings:
    """Return the settings in force: `overrides` that are not None, environment, files, defaults.

    The files are `config` and those of `conf.d` beside it. Raises SettingsError, whose text names
    every wrong key, its value, where it comes from, and what is allowed.
    """
    return load_with_places(config, **overrides)[0]


def load_with_places(config: Path | None, **overrides: object) -> tuple[Settings, Places]:
    """Return the settings as `load_settings` does, and what finds the source of each."""
    chosen = {name: value for name, value in overrides.items() if value is not None}
    _refuse_unknown_variables(os.environ)
    try:
        written = read_files(config) if config is not None else WrittenSettings()
    except UnreadableFile as error:
        raise SettingsError(str(error)) from None
    places = Places(chosen, os.environ, written.files)
    try:
        sources = (
            InitSettingsSource(Settings, chosen),
            _Variables(Settings),
            InitSettingsSource(Settings, written.values),
        )
        return Settings(_build_sources=(sources, {})), places
    except UnreadableFile as error:
        raise SettingsError(str(error)) from None
    except UnreadableVariable as error:
        raise SettingsError(_not_json(error, os.environ)) from None
    except ValidationError as error:
        raise SettingsError(_told(error, places)) from None


def given_settings(**given: object) -> Settings:
    """Return the defaults, changed by `given`; the environment and files are not read.

    Raises SettingsError as `load_settings` does.
    """
    sources = (InitSettingsSource(Settings, given),)
    try:
        return Settings(_build_sources=(sources, {}))
    except ValidationError as error:
        raise SettingsError(_told(error, Places(given, {}, given_by="argument"))) from None


def _told(error: ValidationError, places: Places) -> str:
    """Return the errors of wrong settings, one in a line."""
    found = complaints(error, places, fields=Settings.model_fields, known_in=KNOWN_IN)
    return "\n".join(found)


TABLES: Final[Mapping[str, type[BaseModel]]] = {
    "log": LogSettings,
    "ha": HaSettings,
    "http": HttpSettings,
    "tls": TlsSettings,
    "oauth": OauthSettings,
    "audit": AuditSettings,
    "drain": DrainSettings,
    "tracing": TracingSettings,
}
"""The tables whose settings are environment variables, too."""


SECRETS: Final = frozenset({f"{ENVIRONMENT_PREFIX}STORE"})
"""Variables of settings that may contain a password, and have no setting for its file: another
variable, with FILE_SUFFIX at its end, may name a file that contains the value."""


def variable_names() -> set[str]:
    """Return every environment variable that is a setting."""
    names = {f"{ENVIRONMENT_PREFIX}{name.upper()}" for name in Settings.model_fields}
    for table, settings in TABLES.items():
        prefix = f"{ENVIRONMENT_PREFIX}{table.upper()}_"
        names |= {f"{prefix}{name.upper()}" for name in settings.model_fields}
    return names


def _refuse_unknown_variables(environment: Mapping[str, str]) -> None:
    known = variable_names() | OTHER_VARIABLES | {f"{name}{FILE_SUFFIX}" for name in SECRETS}
    wrong = [
        name
        for name in environment
        if name.upper().startswith(ENVIRONMENT_PREFIX) and name.upper() not in known
    ]
    if wrong:
        lines = [
            f"{name} = {shown(name, environment[name])}:"
            f" {unknown(name, known, prefix=ENVIRONMENT_PREFIX)}"
            for name in wrong
        ]
        raise SettingsError("\n".join(lines))


def _not_json(error: UnreadableVariable, environment: Mapping[str, str]) -> str:
    """Return the error of a variable that should have held a whole table or list."""
    for name in KNOWN_IN:
        variable = f"{ENVIRONMENT_PREFIX}{name.upper()}"
        if f'"{name}"' in str(error) and variable in environment:
            known = ", ".join(KNOWN_IN[name])
            return f"{variable} = {environment[variable]!r}: Input should be JSON with {known}"
    listing = ", ".join(PREFIXES)
    listed = f"{ENVIRONMENT_PREFIX}ADDRESS_PREFIXES"
    if '"address_prefixes"' in str(error) and listed in environment:
        return f"{listed} = {environment[listed]!r}: Input should be a JSON list of {listing}"
    return f"environment: {error}"


KNOWN_IN: Final[dict[str, Iterable[str]]] = {
    **{table: settings.model_fields for table, settings in TABLES.items()},
    "bridge": BridgeSettings.keys(),
    "listener": ListenerSettings.model_fields,
    "address": AddressSettings.model_fields,
    "queue": NodeSettings.model_fields,
    "shard": ShardSettings.model_fields,
    "topic": NodeSettings.model_fields,
}
