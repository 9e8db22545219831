"""The bodies of requests and responses that are no records of management."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from broker.security.account import ROLES_MAX
from broker.security.api_tokens import DESCRIPTION_CHARS_MAX, LIFE_MAX_S, LIFE_MIN_S

IDS_MAX: Final = 10_000
"""Maximum messages that one action changes."""

ID_BYTES_MAX: Final = 20

NAMES_MAX: Final = 1000

Text = Annotated[str, Field(max_length=1020)]
Id = Annotated[str, Field(max_length=ID_BYTES_MAX)]


class RequestBody(BaseModel):
    """A body: fields that are unknown are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=True)


class NodeBody(RequestBody):
    """A queue or topic that is to exist: its settings are those of the first matching pattern."""


class UserBody(RequestBody):
    """A user that is to exist with these credentials and roles.

    What is left out stays as it is; a new user needs a password.
    """

    password: Text | None = None
    roles: Annotated[list[Text], Field(max_length=NAMES_MAX)] | None = None
    administrator: bool | None = None
    certificates: Annotated[list[Text], Field(max_length=NAMES_MAX)] | None = None
    scram: bool | None = None
    enabled: bool | None = None
    keep_old_s: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="seconds for which the old password enters, too"
    )

    @model_validator(mode="after")
    def check(self) -> Self:
        """Raise ValueError if the fields cannot be set together."""
        given = self.model_fields_set - {"enabled"}
        if given - {"roles"} and self.password is None:
            raise ValueError("certificates and others are set together with a password")
        if self.keep_old_s is not None and given - {"password", "scram", "keep_old_s"}:
            raise ValueError("keep_old_s goes with a new password alone")
        if not self.model_fields_set:
            raise ValueError("set a password, roles, or enabled")
        return self


class TokenBody(RequestBody):
    """A new API token; without an owner, it belongs to the caller.

    Without roles it has all roles of its owner. Without `expires_in_s` it ends after 90 days.
    """

    owner: Text | None = None
    description: Annotated[str, Field(max_length=DESCRIPTION_CHARS_MAX)] | None = None
    roles: Annotated[list[Text], Field(max_length=ROLES_MAX)] | None = None
    expires_in_s: Annotated[int, Field(ge=LIFE_MIN_S, le=LIFE_MAX_S)] | None = None


class MessagePlace(RequestBody):
    """A queue, or a subscription by its identity."""

    queue: Text | None = None
    subscription: Text | None = None

    @model_validator(mode="after")
    def check(self) -> Self:
        """Raise ValueError unless exactly one of the fields is set."""
        if bool(self.queue) == bool(self.subscription):
            raise ValueError("set either queue or subscription")
        return self

    def arguments(self) -> dict[str, object]:
        """Return the arguments of management that name this place."""
        return self.model_dump(exclude_none=True)


class MessageActionBody(RequestBody):
    """Messages to move, copy, return to their queue as dead letters, delete, or deliver early.

    They are `ids`, or those that match `selector`, or `all`; only `ids` are delivered before their
    delivery time. `dry_run` only counts them.
    """

    action: Literal["move", "copy", "retry", "delete", "deliver"]
    place: MessagePlace = Field(alias="from")
    ids: Annotated[list[Id], Field(min_length=1, max_length=IDS_MAX)] | None = None
    selector: Text | None = None
    all: bool = False
    to: Text | None = Field(default=None, description="the queue or topic to move or copy them to")
    to_type: Literal["queue", "topic"] | None = None
    limit: Annotated[int, Field(ge=1, le=IDS_MAX)] = IDS_MAX
    dry_run: bool = False

    @model_validator(mode="after")
    def check(self) -> Self:
        """Raise ValueError if the fields do not go together."""
        if [bool(self.ids), bool(self.selector), self.all].count(True) != 1:
            raise ValueError("set one of ids, selector, and all")
        if (self.action in ("move", "copy")) != (self.to is not None):
            raise ValueError("an action has `to` if it is move or copy, else it has none")
        if self.to_type is not None and self.to is None:
            raise ValueError("to_type says what `to` is")
        if self.action == "deliver" and not self.ids:
            raise ValueError("the action deliver takes ids, of messages that are scheduled")
        if self.ids and self.dry_run:
            raise ValueError("dry_run counts the messages of selector or all; ids are known")
        return self


class JobRecord(BaseModel):
    """A message action: `state` is running, done, failed or stopped (by a node that was full).

    `done` messages were moved, copied, deleted or delivered early; with `dry_run` they would be.
    `missing` are ids that were not there, at most 100 of them. `skipped` messages stay; `reason` is
    why the first of them does, or why the action failed or stopped.
    """

    id: str
    action: str
    user: str
    state: Literal["running", "done", "failed", "stopped"]
    dry_run: bool
    done: int
    skipped: int
    missing: list[str]
    reason: str | None
    started_at: int
    ended_at: int | None


class AlarmRecord(BaseModel):
    """An alarm: a state in which the broker takes less than it is asked to, or answers nothing."""

    name: str
    holds: bool


class ListenerRecord(BaseModel):
    """A listener with its connections and their bytes since the start.

    `certificate_ends_at` is when its first certificate or revocation list ends, null without TLS.
    """

    name: str
    connections: int
    opened: int
    closed: int
    received_bytes: int
    sent_bytes: int
    certificate_ends_at: int | None


class TopicBranchRecord(BaseModel):
    """The topics whose names begin with the words `name`; the numbers are sums over them."""

    name: str
    is_topic: bool
    topics: int
    subscriptions: int
    published: int


class DeadLetterOriginRecord(BaseModel):
    """Dead letters of one source and reason; times are 0 if they are unknown."""

    source: str
    reason: str
    messages: int
    first_at: int
    last_at: int


class DeadLetterQueueRecord(BaseModel):
    """A dead-letter queue, with the origins of its first `examined` messages."""

    name: str
    messages: int
    examined: int
    origins: list[DeadLetterOriginRecord]


class MessageLifeRecord(BaseModel):
    """The events of a message, the oldest first, and why there may be others."""

    events: list[dict[str, object]]
    note: str


class LogLevelBody(RequestBody):
    """A level of the log: lines of it and above are written."""

    level: Text


class LogLevelRecord(BaseModel):
    """The level of the log."""

    level: str


class DefinitionsKind(BaseModel):
    """A kind of definitions, such as `queues`."""

    name: str
    version: int
    entries: int


class DefinitionsPage(BaseModel):
    """A page of definitions of one kind; `next` is the `offset` of the next page."""

    version: int
    definitions: list[dict[str, object]]
    next: int | None


class DefinitionsBody(RequestBody):
    """Definitions of one kind to add, or to change those that differ. None is removed."""

    version: int
    definitions: Annotated[list[dict[str, object]], Field(max_length=NAMES_MAX)]
    dry_run: bool = False
    secrets: bool = False


class ImportRecord(BaseModel):
    """The outcomes of an import in the order of the definitions, and the number of each result."""

    added: int
    changed: int
    unchanged: int
    refused: int
    outcomes: list[dict[str, object]]


class BackupBody(RequestBody):
    """A backup: the new file on the broker's machine, from the root."""

    file: Text


class AccessBody(RequestBody):
    """A question to the access rules: may the client described do that?"""

    verb: Text
    resource: Text = Field(description="such as `queue:orders`")
    user: Text | None = None
    roles: Annotated[list[Text], Field(max_length=NAMES_MAX)] | None = None
    mechanism: Text | None = None
    client_id: Text | None = None
    listener: Text | None = None
    host: Text | None = Field(default=None, alias="from")
    tls: bool | None = None


class ManagementBody(RequestBody):
    """A request to management, with the names that `$management` has for its parts.

    Binary arguments are `{"base64": …}`.
    """

    operation: Text
    type: Text
    name: Text | None = None
    identity: Text | None = None
    properties: dict[str, object] = Field(
        default_factory=dict, description="application properties, such as entityType of a QUERY"
    )
    arguments: dict[str, object] = Field(default_factory=dict)


class ManagementRecord(BaseModel):
    """The response of management: its status code, text, and body."""

    status: int
    description: str
    body: object


class Nothing(RequestBody):
    """An empty object."""


class SettingRecord(BaseModel):
    """A setting: its value, where it comes from, and whether a reload applies it."""

    value: object
    origin: str
    reload: bool


class AllSettings(BaseModel):
    """All settings, without secrets."""

    settings: dict[str, SettingRecord]


class ReloadRecord(BaseModel):
    """The effect of a reload on each setting: applied, unchanged, or needs restart.

    `certificates` tells the certificates of each listener with TLS, and what is new.
    """

    dry_run: bool
    settings: dict[str, str]
    certificates: dict[str, str]


class BoundsRecord(BaseModel):
    """The ids of the first and the last row of the event log, 0 if it is empty."""

    first: int
    last: int


class NearMissRecord(BaseModel):
    """A rule that would have decided, and the part of it that does not match."""

    rule: str
    failed: str


class AccessRecord(BaseModel):
    """A decision of the access rules, with its reason, and the limits of the user."""

    decision: str
    canonical: str
    rule: str | None
    because: str
    witness: str | None
    near_misses: list[NearMissRecord]
    limits: str


class RuleProblemRecord(BaseModel):
    """Something wrong with a rule, a limit, a role or a user."""

    rule: str
    problem: str


class CheckRecord(BaseModel):
    """The problems of the access rules, and the numbers of entries of the rules file."""

    problems: list[RuleProblemRecord]
    rules: int
    roles: int
    limits: int


class AuditRecord(BaseModel):
    """A record of the audit."""

    model_config = ConfigDict(extra="allow")

    at: str
    seq: int
    actor: str | None
    action: str
    resource: str | None
    result: str


class MessageContent(BaseModel):
    """A message: the attributes of a list, and its sections."""

    model_config = ConfigDict(extra="allow")

    name: str
    identity: str
    queue: str
    state: str
    properties: object
    application_properties: object
    annotations: object
    body_kind: str
    body_truncated: bool
