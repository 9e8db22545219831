"""Finding and checking the body of a message of which only a part has arrived.

Applies the rules of `sections.py`, which needs a whole message in memory, to large messages.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.amqp.constructors import (
    FORMS,
    NO_CONSTRUCTOR,
    VARIABLE_8,
    VARIABLE_32,
    descriptor_at,
    malformed,
    no_constructor,
    open_body,
    too_deep,
    u32_at,
)
from broker.amqp.descriptors import AMQP_SEQUENCE, AMQP_VALUE, DATA, FOOTER
from broker.amqp.errors import RESOURCE_LIMIT_EXCEEDED, LinkFault
from broker.amqp.limits import DEPTH_MAX, SECTIONS_BEFORE_BODY_MAX, SECTIONS_MAX

ENOUGH: Final[i64] = SECTIONS_BEFORE_BODY_MAX + 512
"""Bytes from the start of a message that `find_body` needs, whatever they contain."""

UNKNOWN_END: Final[i64] = 0x7FFF_FFFF_FFFF
"""An end position beyond all data, for a value whose end has not arrived."""

MORE: Final[i64] = -1
"""Returned instead of a length if more bytes are needed to compute it."""

NAME_MAX: Final[i64] = 64
"""Maximum bytes of the symbolic descriptor of a section: none has a longer name."""


def find_body(data: bytes, start: i64, end: i64) -> i64:
    """Return the position of the body in a message of which `data[start:end]` has arrived.

    That must be at least ENOUGH bytes. Raise LinkFault if the body begins too late, ConnectionFault
    if a section before it is malformed.
    """
    at = start
    while at - start <= SECTIONS_BEFORE_BODY_MAX:
        code, value = descriptor_at(data, at, end)
        if code >= DATA:
            return at
        if value >= end:
            break
        form = i64(data[value])
        if form == 0x45:
            at = value + 1
        elif form == 0xC0 or form == 0xC1 or form == 0xD0 or form == 0xD1:
            at = open_body(data, value + 1, UNKNOWN_END, form)[2]
        else:
            raise malformed("a section that is neither list nor map")
    raise LinkFault(
        RESOURCE_LIMIT_EXCEEDED, f"more than {SECTIONS_BEFORE_BODY_MAX} bytes in front of the body"
    )


@final
class BodyScanner:
    """A check of the sections of a body and the footer, in pieces as they arrive.

    It skips each value by its size, whatever the value contains. `_head` holds the bytes of the
    constructor or descriptor that is being read, `_left` is the number of bytes to skip.
    `_section` is the code of the section that is being read, -1 between sections; `_kind` is the
    code of the body's sections, -1 before the first.
    """

    def __init__(self) -> None:
        self._head: bytes = b""
        self._left: i64 = 0
        self._kind: i64 = -1
        self._section: i64 = -1
        self._is_descriptor = False
        self._depth: i64 = 0
        self._sections: i64 = 0
        self._has_footer = False

    def is_whole(self) -> bool:
        """Return whether the message could end after the bytes that were walked so far."""
        return self._left == 0 and self._section < 0 and not self._head

    def walk(self, data: bytes, at: i64, end: i64) -> None:
        """Check the next part, `data[at:end]`. Raise a Fault if it is malformed."""
        while at < end:
            if self._left > 0:
                step = min(self._left, end - at)
                self._left -= step
                at += step
                continue
            self._head += data[at : at + 1]
            at += 1
            length = self._length()
            if length != MORE:
                self._head = b""
                self._left = length

    def _length(self) -> i64:
        """Return the number of bytes to skip after `_head`, or MORE."""
        if self._section < 0:
            return self._open_section()
        if self._is_descriptor:
            length = _length_of_descriptor(self._head)
            if length != MORE:
                self._is_descriptor = False
            return length
        return self._open_value()

    def _open_section(self) -> i64:
        head = self._head
        if self._has_footer:
            raise malformed("a section behind the footer")
        if head[0] != 0:
            raise malformed("a described value was expected")
        if _is_cut(head, 1):
            return MORE
        code, _ = descriptor_at(head, 0, i64(len(head)))
        self._section = code
        self._depth = 0
        if code == FOOTER:
            self._has_footer = True
            return 0
        if self._kind < 0 and DATA <= code <= AMQP_VALUE:
            self._kind = code
        elif code != self._kind or code == AMQP_VALUE:
            raise malformed("a section that does not belong to the body")
        self._sections += 1
        if self._sections > SECTIONS_MAX:
            raise LinkFault(
                RESOURCE_LIMIT_EXCEEDED, f"more than {SECTIONS_MAX} sections in the body"
            )
        return 0

    def _open_value(self) -> i64:
        head = self._head
        code = i64(head[0])
        if self._depth == 0:
            _check_form(self._section, code)
        if code == 0:
            self._depth += 1
            if self._depth > DEPTH_MAX:
                raise too_deep()
            self._is_descriptor = True
            return 0
        length = _length_of(head, code)
        if length != MORE:
            self._section = -1
        return length


def _check_form(section: i64, code: i64) -> None:
    """Raise ConnectionFault if constructor `code` is wrong for `section` (3.2.6 to 3.2.9)."""
    if section == DATA:
        if code != 0xA0 and code != 0xB0:
            raise malformed("a data section that is not binary")
    elif section == AMQP_SEQUENCE:
        if code != 0x45 and code != 0xC0 and code != 0xD0:
            raise malformed("a sequence section that is not a list")
    elif section == FOOTER and code != 0xC1 and code != 0xD1:
        raise malformed("a section that is not a map")


def _length_of(head: bytes, code: i64) -> i64:
    """Return the number of bytes of a value that follow its beginning `head`, or MORE."""
    size = i64(len(head))
    form = i64(FORMS[code])
    if form == NO_CONSTRUCTOR:
        raise no_constructor(code)
    if form <= 16:
        return form
    if form == VARIABLE_8:
        return MORE if size < 2 else i64(head[1])
    if form == VARIABLE_32:
        return MORE if size < 5 else u32_at(head, 1)
    if size < (9 if code & 0x10 else 3):
        return MORE
    return open_body(head, 1, UNKNOWN_END, code)[2] - size


def _is_cut(head: bytes, at: i64) -> bool:
    """Return whether the descriptor of a section, at `at` (behind its 0x00), is incomplete."""
    size = i64(len(head)) - at
    length = _length_of_descriptor(head, at)
    if length == MORE:
        return True
    width: i64 = 5 if head[at] == 0xB3 else (2 if head[at] == 0xA3 else 1)
    if length > NAME_MAX:
        raise malformed(f"the name of a section has more than {NAME_MAX} characters")
    return size < width + length


def _length_of_descriptor(head: bytes, at: i64 = 0) -> i64:
    """Return the number of bytes of a descriptor that follow its size, or MORE.

    It begins at `at`, behind its 0x00.
    """
    size = i64(len(head)) - at
    if size == 0:
        return MORE
    code = i64(head[at])
    if code == 0x53:
        return 1
    if code == 0x80:
        return 8
    if code == 0x44:
        return 0
    if code == 0xA3:
        return MORE if size < 2 else i64(head[at + 1])
    if code == 0xB3:
        return MORE if size < 5 else u32_at(head, at + 1)
    raise malformed("a descriptor is neither a ulong nor a symbol")
