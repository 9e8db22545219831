"""JMS messages: headers as attributes, properties by the names that JMS defines."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import mypyc_attr

from broker.amqp.types import (
    Array,
    Byte,
    Char,
    Described,
    Int,
    Map,
    Short,
)
from broker.jms.bodies import Body, BodySection
from broker.jms.destinations import Destination
from broker.jms.errors import MappingError
from broker.jms.identifiers import is_identifier
from broker.jms.profile import Profile

NON_PERSISTENT: Final = 1
PERSISTENT: Final = 2
"""Values of JMSDeliveryMode."""

PRIORITY_DEFAULT: Final = 4

NO_ANNOTATIONS: Final = Map([])

INT_MAX: Final = 0x7FFF_FFFF
UINT_MAX: Final = 0xFFFF_FFFF

JMSX_USER_ID: Final = "JMSXUserID"
JMSX_APP_ID: Final = "JMSXAppID"
JMSX_DELIVERY_COUNT: Final = "JMSXDeliveryCount"
JMSX_GROUP_ID: Final = "JMSXGroupID"
JMSX_GROUP_SEQ: Final = "JMSXGroupSeq"

JMS_AMQP: Final = "JMS_AMQP"
JMS_AMQP_TTL: Final = "JMS_AMQP_TTL"
JMS_AMQP_FIRST_ACQUIRER: Final = "JMS_AMQP_FIRST_ACQUIRER"
JMS_AMQP_REPLY_TO_GROUP_ID: Final = "JMS_AMQP_REPLY_TO_GROUP_ID"
JMS_AMQP_SUBJECT: Final = "JMS_AMQP_SUBJECT"
JMS_AMQP_CONTENT_TYPE: Final = "JMS_AMQP_CONTENT_TYPE"
JMS_AMQP_CONTENT_ENCODING: Final = "JMS_AMQP_CONTENT_ENCODING"

NOT_FOR_APPLICATIONS: Final = frozenset(
    {
        *(JMSX_DELIVERY_COUNT, "JMSXProducerTXID", "JMSXConsumerTXID", "JMSXRcvTimestamp"),
        *("JMSXState", JMS_AMQP_FIRST_ACQUIRER),
    }
)
"""Properties that only a provider sets, or that are not mapped at all (WD10 3.2.2, 4)."""

WITHOUT_UNDERSCORES: Final = {
    "JMSAMQPCONTENTTYPE": JMS_AMQP_CONTENT_TYPE,
    "JMSAMQPCONTENTENCODING": JMS_AMQP_CONTENT_ENCODING,
}
"""Two of EARLY's vendor properties, by their names in PROPS, which lack the underscores."""


@mypyc_attr(acyclic=True)
@final
class JmsMessage:
    """A message as JMS programs see it. Times are milliseconds since 1970, 0 is none.

    `time_to_live` (ms) is that of the producer, or the rest of it in a received message's header;
    `amqp_ttl` is the property JMS_AMQP_TTL, which an application sets to have another value in the
    header. `delivery_time` 0 means the same as `timestamp`. `subject` is a vendor property of
    EARLY; in WD10 the subject is the `type`. `annotations` are those outside the mapping,
    `properties` the application's own. `is_received` tells a decoded message from a made
    one, and `body_section` is the section that held its body.
    """

    def __init__(
        self,
        body: Body,
        *,
        properties: dict[str, object] | None = None,
        profile: Profile = Profile.WD10,
    ) -> None:
        """`properties` are set with `set_property`, which refuses invalid ones by MappingError."""
        self.body: Body = body
        self.profile: Final = profile
        self.is_received: bool = False
        self.body_section: BodySection = BodySection.NONE
        self.message_id: str | None = None
        self.correlation_id: str | None = None
        self.timestamp: int = 0
        self.destination: Destination | None = None
        self.reply_to: Destination | None = None
        self.delivery_mode: int = PERSISTENT
        self.type: str | None = None
        self.expiration: int = 0
        self.priority: int = PRIORITY_DEFAULT
        self.delivery_time: int = 0
        self.delivery_count: int = 1
        self.user_id: str | None = None
        self.group_id: str | None = None
        self.group_sequence: int | None = None
        self.first_acquirer: bool = False
        self.reply_to_group_id: str | None = None
        self.subject: str | None = None
        self.content_type: str | None = body.content_type
        self.content_encoding: str | None = None
        self.amqp_ttl: int | None = None
        self.time_to_live: int = 0
        self.annotations: Map = NO_ANNOTATIONS
        self.properties: Final[dict[str, object]] = {}
        if properties is not None:
            for name, value in properties.items():
                self.set_property(name, value)

    @property
    def redelivered(self) -> bool:
        """JMSRedelivered: whether this is not the first delivery."""
        return self.delivery_count > 1

    def set_property(self, name: str, value: object) -> None:
        """Set a property as an application does, including those of JMSX and JMS_AMQP.

        An int is a long, a float a double; use Byte, Short, Int and Float for the other types.
        MappingError if an application may not set that name, no selector could name it, or the
        value is of no simple type, or a char (JMS 2.0 3.5.1; EARLY 4.2.3).
        """
        if not name:
            raise MappingError("a property without a name")
        if name.startswith("JMS"):
            spelled = self._spelled(name)
            if self._set_defined(spelled, value):
                return
            if not spelled.startswith(("JMSX", "JMS_")):
                raise MappingError(f"{name:.100} is no property: JMS keeps such names for headers")
        if not is_identifier(name):
            raise MappingError(
                f"{name!r:.100} is no name of a property: a selector could not name it"
            )
        if isinstance(value, Char):
            raise MappingError(f"{name:.100} is a char, which no property may be: set a string")
        self._set_own(name, value)

    def set_any_property(self, name: str, value: object) -> None:
        """Set a property that another AMQP client may have sent: of any name, or a char.

        Properties that the mapping defines are set as by `set_property`. MappingError if it refuses
        them, or the value is of no simple type.
        """
        if name.startswith("JMS") and self._set_defined(self._spelled(name), value):
            return
        self._set_own(name, value)

    def _set_own(self, name: str, value: object) -> None:
        if not _is_simple(value):
            raise MappingError(f"{name:.100} is no simple value, but a {type(value).__name__}")
        self.properties[name] = value

    def _set_defined(self, name: str, value: object) -> bool:
        """Set a property that the mapping defines; return False for an application's own."""
        if name in NOT_FOR_APPLICATIONS:
            raise MappingError(f"{name} is not for an application to set")
        if name == JMSX_USER_ID:
            self.user_id = _string(name, value)
        elif name == JMSX_GROUP_ID:
            self.group_id = _string(name, value)
        elif name == JMSX_GROUP_SEQ:
            self.group_sequence = _number(name, value, low=-INT_MAX - 1, high=INT_MAX)
        elif name == JMS_AMQP_TTL:
            self.amqp_ttl = _number(name, value, low=0, high=UINT_MAX)
        elif name == JMS_AMQP_REPLY_TO_GROUP_ID:
            self.reply_to_group_id = _string(name, value)
        elif self.profile is Profile.EARLY and name == JMS_AMQP_SUBJECT:
            self.subject = _string(name, value)
        elif self.profile is Profile.EARLY and name == JMS_AMQP_CONTENT_TYPE:
            self.content_type = _string(name, value)
        elif self.profile is Profile.EARLY and name == JMS_AMQP_CONTENT_ENCODING:
            self.content_encoding = _string(name, value)
        elif name.startswith(JMS_AMQP):
            raise MappingError(f"{name:.100} is no property of the mapping, nor anybody else's")
        else:
            if name == JMSX_APP_ID:
                _string(name, value)
            return False
        return True

    def get_property(self, name: str) -> object:
        """Return the value of a property, None if it is not set."""
        return self.all_properties().get(self._spelled(name))

    def all_properties(self) -> dict[str, object]:
        """Return all properties by their JMS names: the application's, JMSX and JMS_AMQP."""
        found: dict[str, object] = dict(self.properties)
        found[JMSX_DELIVERY_COUNT] = Int(self.delivery_count)
        found[JMS_AMQP_FIRST_ACQUIRER] = self.first_acquirer
        if self.group_sequence is not None:
            found[JMSX_GROUP_SEQ] = Int(self.group_sequence)
        if self.amqp_ttl is not None:
            found[JMS_AMQP_TTL] = self.amqp_ttl
        found.update({name: text for name, text in self._texts().items() if text is not None})
        return found

    def _texts(self) -> dict[str, str | None]:
        texts = {
            JMSX_USER_ID: self.user_id,
            JMSX_GROUP_ID: self.group_id,
            JMS_AMQP_REPLY_TO_GROUP_ID: self.reply_to_group_id,
        }
        if self.profile is Profile.EARLY:
            texts[JMS_AMQP_SUBJECT] = self.subject
            texts[JMS_AMQP_CONTENT_TYPE] = self.content_type
            texts[JMS_AMQP_CONTENT_ENCODING] = self.content_encoding
        return texts

    def _spelled(self, name: str) -> str:
        return WITHOUT_UNDERSCORES.get(name, name) if self.profile is Profile.EARLY else name


def _is_simple(value: object) -> bool:
    # one check each: with list and dict in one tuple, mypyc generates a slower call of Python's
    # isinstance for each value
    if isinstance(value, list):
        return False
    if isinstance(value, dict):
        return False
    return not isinstance(value, (Map, Array, Described))


def _string(name: str, value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise MappingError(f"{name} is a string, not {value!r:.100}")


def _number(name: str, value: object, *, low: int, high: int) -> int | None:
    if value is None:
        return None
    number = value.value if isinstance(value, (Byte, Short, Int)) else value
    if isinstance(number, int) and not isinstance(number, bool) and low <= number <= high:
        return number
    raise MappingError(f"{name} is a number from {low} to {high}, not {value!r:.100}")
