"""The settings of addresses: the one table of their names, types, defaults and texts.

Made from it are the settings for all addresses (`GeneralAddressSettings`), the tables
`[[address]]`, `[[queue]]` and `[[topic]]`, the policies (`broker/policies.py`), the definitions of
nodes, the parts of `config/broker.toml`, and the page `docs/reference/address-settings.md`
(`config/settings_texts.py`). The parameters of an `AddressPolicy` are written by hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic_settings import BaseSettings

from broker.setting_types import Count, Factor, Window

DEFAULT: Final = "default"
"""The key under which the description of a field keeps its default for all addresses."""


def _setting(default: object, text: str) -> Any:
    """Declare a setting of addresses: its `default` for all, and its `text` for operators.

    The field itself is None by default: the table does not differ in it.
    """
    return Field(default=None, description=text, json_schema_extra={DEFAULT: default})  # type: ignore[dict-item]


class PlaceSettings(BaseModel):
    """Settings that can differ between addresses; None means: as for all addresses."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    dead_letter: str | None = _setting(
        "DLQ",
        "The queue for rejected messages and for those that failed too often; the broker creates it"
        ' when it is first needed. "" discards and counts them. It takes them beyond its own'
        " limits; if there can be no such queue, the messages stay where they are, held.",
    )
    expiry: str | None = _setting(
        "", "The queue for expired messages, under the same rules as dead_letter."
    )
    dead_letter_properties: bool | None = _setting(
        False,
        "Whether moved messages also carry the reason in application properties, which JMS"
        " applications can read: dead_letter_reason, dead_letter_queue, …"
        " (docs/concepts/queues.md). This changes the message that its sender sent.",
    )
    max_delivery_count: Count | None = _setting(
        20, "Failed deliveries after which a message becomes a dead letter; 0 is no limit."
    )
    redelivery_delay_ms: Count | None = _setting(
        0,
        "Milliseconds before a failed message is delivered again; other messages overtake it"
        " meanwhile. 0 delivers it again at once, in its place.",
    )
    redelivery_backoff: Factor | None = _setting(
        1.0, "Factor, 1 to 100, by which that delay grows with each failure of the message."
    )
    redelivery_delay_max_ms: Count | None = _setting(
        0, "Milliseconds to which that delay grows at most; 0 is no limit."
    )
    max_messages: Count | None = _setting(
        0, "Messages that one queue or subscription holds at most; 0 is no limit."
    )
    max_bytes: Count | None = _setting(
        0, "Bytes that one queue or subscription holds at most; 0 is no limit."
    )
    full: Literal["block", "reject", "drop-oldest"] | None = _setting(
        "block",
        'Behaviour of a full queue. "block": its producers get no more credit until there is room;'
        " messages to the anonymous relay are rejected. A message of a transaction takes its room"
        ' when it is sent, so a commit is never refused for want of room. "reject": messages are'
        ' rejected, and commits that do not fit. "drop-oldest": the oldest ready message of the'
        " lowest priority is discarded and counted.",
    )
    exclusive: bool | None = _setting(
        False, "Whether one consumer at a time gets all messages, while the others stand by."
    )
    duplicate_window: Window | None = _setting(
        0,
        "Message ids that a queue or topic remembers, so that a message that is sent again is"
        " accepted and discarded. The id is the application property _AMQ_DUPL_ID, else the"
        " message-id. 0 detects no duplicates, 1000000 is the most; 200 bytes of memory each.",
    )
    duplicate_window_ms: Count | None = _setting(
        0, "Milliseconds for which such an id is remembered at most; 0 is no limit."
    )
    deliver_before_commit: bool | None = _setting(
        True,
        "Whether a durable message may be delivered while it is still being written. After a power"
        " cut its sender has no answer then, and sends it again. false delivers only messages"
        " that are on the disk.",
    )
    event_log: bool | None = _setting(
        False, "Whether the broker logs the events of each message: `jms-broker events` shows them."
    )


class AddressSettings(PlaceSettings):
    """One `[[address]]`: the settings of addresses that match `pattern`."""

    pattern: Annotated[str, Field(min_length=1, max_length=255)]
    auto_create: bool | None = _setting(
        True, "Whether a queue or topic is created when a client first names it."
    )
    auto_delete_after_ms: Count | None = _setting(
        0,
        "Milliseconds after which a queue or topic that was created in that way is deleted if it"
        " has no links, subscriptions, leases, messages (staged and scheduled ones included) and"
        " remembered ids. 0 deletes none.",
    )


class NodeSettings(PlaceSettings):
    """One `[[queue]]` or `[[topic]]`, which exists from the start.

    A setting that it leaves out is as for the first pattern that matches its name.
    """

    name: Annotated[str, Field(min_length=1, max_length=255)]


NAMES: Final = (
    *(name for name in AddressSettings.__annotations__ if name != "pattern"),
    *PlaceSettings.model_fields,
)
"""The names of all settings of addresses, in the order in which they are shown."""


def default_of(name: str) -> object:
    """Return the default of a setting for all addresses."""
    extra = AddressSettings.model_fields[name].json_schema_extra
    assert isinstance(extra, dict)
    return extra[DEFAULT]


def text_of(name: str) -> str:
    """Return the description of a setting."""
    return AddressSettings.model_fields[name].description or ""


def type_of(name: str) -> Any:
    """Return the type of a setting for all addresses: without None."""
    (found,) = (
        each
        for each in get_args(AddressSettings.model_fields[name].annotation)
        if each is not type(None)
    )
    return found


if TYPE_CHECKING:

    class GeneralAddressSettings(BaseSettings):
        """The settings of addresses with their defaults, as `Settings` has them."""

else:
    GeneralAddressSettings = create_model(
        "GeneralAddressSettings",
        __base__=BaseSettings,
        **{
            name: (type_of(name), Field(default_of(name), description=text_of(name)))
            for name in NAMES
        },
    )
