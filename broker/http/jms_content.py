"""The body of a message over HTTP: its bytes, and what they are."""

from __future__ import annotations

import asyncio
import json
import re
from base64 import b64encode
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from broker.amqp.decode import descriptor_at
from broker.amqp.descriptors import AMQP_VALUE, DATA
from broker.amqp.errors import Fault
from broker.amqp.sections import Sections
from broker.amqp.types import Array, Char, Described, Float, Integer, Map
from broker.http.jms_fields import CONTENT_TYPE
from broker.http.streams import ReportedFailure
from broker.jms.bodies import Body, BytesBody, MessageKind, NoBody, SerializedBody, TextBody
from broker.jms.content_type import JAVA_OBJECT, OCTET_STREAM
from broker.jms.message import JmsMessage
from broker.large_body import LargeBody
from broker.large_body_store import LargeBodyStore
from storage.contents import CHUNK_SIZE

TEXT: Final = "text/plain"
JSON: Final = "application/json"

ENCODED: Final = "application/vnd.amqp.body"
"""The type of a body that is sent as AMQP encodes it: a large one, neither text nor bytes."""

NAMES: Final = {
    MessageKind.MESSAGE: "Message",
    MessageKind.OBJECT: "ObjectMessage",
    MessageKind.MAP: "MapMessage",
    MessageKind.BYTES: "BytesMessage",
    MessageKind.STREAM: "StreamMessage",
    MessageKind.TEXT: "TextMessage",
}

SAFE_TYPE: Final = re.compile(r"[\x21-\x2e\x30-\x7e]{1,127}/[\x20-\x7e]{1,200}")
"""The content types that a response repeats. Only the second part may have slashes: a sender's
text of 250,000 slashes would else be tried at each of them."""

SHORT_BINARY, SHORT_TEXT = 0xA0, 0xA1
LONG_BINARY, LONG_TEXT = 0xB0, 0xB1


@dataclass(frozen=True, kw_only=True)
class JmsContent:
    """A body for a response: its type, the kind of message, and its bytes.

    `data` come first, then those of `large` from index `start` on.
    """

    media_type: str
    kind: str
    data: bytes = b""
    large: LargeBody | None = None
    start: int = 0

    def size(self) -> int:
        """Return the number of bytes."""
        return len(self.data) + (0 if self.large is None else self.large.size - self.start)


def undecoded_content(
    message: JmsMessage, data: bytes, sections: Sections, *, large: LargeBody | None = None
) -> JmsContent:
    """Return the content of a large message: its text or its bytes, else the body as encoded.

    `data` are its encoded sections, without the body if that is `large`.
    """
    at = sections.body
    if large is None and at < 0:
        return JmsContent(media_type=OCTET_STREAM, kind=NAMES[MessageKind.MESSAGE])
    end = sections.end if sections.footer < 0 else sections.footer
    size = end - at if large is None else large.size
    found = _single(data[at:end] if large is None else large.stored.beginning, size)
    start, kind = found or (0, MessageKind.MESSAGE)
    media = ENCODED
    if kind is MessageKind.TEXT:
        media = text_type(message)
    elif kind is MessageKind.BYTES:
        media = bytes_type(message)
    if large is not None:
        return JmsContent(media_type=media, kind=NAMES[kind], large=large, start=start)
    return JmsContent(media_type=media, kind=NAMES[kind], data=data[at + start : end])


def _single(body: bytes, size: int) -> tuple[int, MessageKind] | None:
    """Return where the text or bytes of a body begin, if it is a single section of these.

    `body` is its beginning, `size` its whole size.
    """
    try:
        code, at = descriptor_at(body, 0, len(body))
    except Fault:
        return None
    form = body[at] if at < len(body) else 0
    width = 1 if form in (SHORT_BINARY, SHORT_TEXT) else 4
    start = at + 1 + width
    if int.from_bytes(body[at + 1 : start], "big") != size - start:
        return None
    if form in (SHORT_BINARY, LONG_BINARY) and code in (DATA, AMQP_VALUE):
        return start, MessageKind.BYTES
    if form in (SHORT_TEXT, LONG_TEXT) and code == AMQP_VALUE:
        return start, MessageKind.TEXT
    return None


def decoded_content(message: JmsMessage) -> JmsContent:
    """Return the content of a message whose body has been decoded."""
    body = message.body
    kind = NAMES[body.kind]
    match body:
        case TextBody():
            text = (body.text or "").encode(errors="replace")
            return JmsContent(media_type=text_type(message), kind=kind, data=text)
        case BytesBody():
            return JmsContent(media_type=bytes_type(message), kind=kind, data=body.data)
        case SerializedBody():
            return JmsContent(media_type=JAVA_OBJECT, kind=kind, data=body.serialized)
        case NoBody():
            return JmsContent(media_type=OCTET_STREAM, kind=kind)
        case _:
            return JmsContent(media_type=JSON, kind=kind, data=json_of(body))


def json_of(body: Body) -> bytes:
    """Return the content of a MapMessage, StreamMessage or ObjectMessage as JSON."""
    return json.dumps(plain_value(body.content)).encode()


def plain_value(value: object) -> object:
    """Return a value of AMQP as one of JSON; bytes are base64, other types are text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float() | Float():
            number = value.value if isinstance(value, Float) else value
            return number if abs(number) < float("inf") else str(number)
        case Char():
            return chr(value.value)
        case Integer():
            return value.value
        case bytes():
            return b64encode(value).decode()
        case list():
            return [plain_value(each) for each in value]
        case dict():
            return {str(key): plain_value(held) for key, held in value.items()}
        case Map():
            return {_key(key): plain_value(held) for key, held in value.pairs}
        case Array():
            return [plain_value(each) for each in value.values]
        case Described():
            return plain_value(value.value)
        case _:
            return str(value)


def _key(key: object) -> str:
    plain = plain_value(key)
    return plain if isinstance(plain, str) else json.dumps(plain)


def text_type(message: JmsMessage) -> str:
    """Return the content type of a text, which a response has in UTF-8."""
    media = _given_type(message).partition(";")[0].strip() or TEXT
    return f"{media}; charset=utf-8"


def bytes_type(message: JmsMessage) -> str:
    """Return the content type of bytes: that of SOAP over JMS, else that of the message."""
    given = _given_type(message)
    own = message.content_type or ""
    return given or (own if SAFE_TYPE.fullmatch(own) else "") or OCTET_STREAM


def _given_type(message: JmsMessage) -> str:
    given = message.properties.get(CONTENT_TYPE)
    return given if isinstance(given, str) and SAFE_TYPE.fullmatch(given) else ""


async def pieces_of(content: JmsContent, contents: LargeBodyStore | None) -> AsyncIterator[bytes]:
    """Yield the bytes of a content, a large one chunk by chunk; BrokenBody if one is damaged."""
    if content.data:
        yield content.data
    large = content.large
    if large is None:
        return
    assert contents is not None
    loop = asyncio.get_running_loop()
    saved: asyncio.Future[bytes] = loop.create_future()
    large.call_when_saved(partial(_done, saved, b""))
    await saved
    left_out = content.start
    for index in range(-(-large.size // CHUNK_SIZE)):
        read: asyncio.Future[bytes] = loop.create_future()
        contents.read(
            int(large.stored.number),
            index,
            arrived=partial(_done, read),
            damaged=partial(_failed, read),
        )
        chunk = await read
        yield chunk[left_out:]
        left_out = max(0, left_out - len(chunk))


class BrokenBody(ReportedFailure):
    """A large body that cannot be read. The text says why."""


def _done(future: asyncio.Future[bytes], data: bytes) -> None:
    if not future.done():
        future.set_result(data)


def _failed(future: asyncio.Future[bytes], why: str) -> None:
    if not future.done():
        future.set_exception(BrokenBody(why))
