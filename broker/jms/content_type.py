"""Content-types, which tell the kind of a body without annotation (WD10 3.3.4, EARLY 4.3.7)."""

from __future__ import annotations

from typing import Final

from broker.jms.profile import Profile

OCTET_STREAM: Final = "application/octet-stream"
JAVA_OBJECT: Final = "application/x-java-serialized-object"

CHARSETS: Final = frozenset(
    {
        *("utf-8", "utf8", "utf-16", "utf-16be", "utf-16le", "utf-32", "utf-32be", "utf-32le"),
        *("us-ascii", "ascii", "gb2312", "gbk", "gb18030", "big5", "shift_jis", "euc-jp"),
        *("iso-2022-jp", "euc-kr", "koi8-r", "koi8-u", "tis-620"),
        *(f"iso-8859-{part}" for part in range(1, 17) if part != 12),
        *(f"windows-{page}" for page in range(1250, 1259)),
    }
)
"""The only charsets that are decoded, because Python imports a module for each name it looks up."""

APPLICATION_TEXT: Final = frozenset(
    {
        "application/xml",
        "application/xml-dtd",
        "application/json",
        "application/javascript",
        "application/ecmascript",
    }
)


def is_java_object(content_type: str | None) -> bool:
    return content_type is not None and _media_type(content_type) == JAVA_OBJECT


def is_text(content_type: str | None, profile: Profile) -> bool:
    """Return whether it is one of WD10's textual media types, or EARLY's only one, text/plain."""
    if content_type is None:
        return False
    media_type = _media_type(content_type)
    if profile is Profile.EARLY:
        return media_type == "text/plain"
    if media_type.startswith("text/") or media_type in APPLICATION_TEXT:
        return True
    return media_type.startswith("application/") and media_type.endswith(("+xml", "+json"))


def charset_of(content_type: str | None) -> str | None:
    """Return the charset that it names, UTF-8 if it names none; None if not one of CHARSETS."""
    charset = "utf-8" if content_type is None else _parameter(content_type, "charset") or "utf-8"
    return charset if charset in CHARSETS else None


def decoded(content: bytes, charset: str) -> str:
    """Return `content` as text; UTF-16 and UTF-32 without a byte order mark are big-endian.

    `charset` is one of CHARSETS. Raise UnicodeDecodeError if `content` is not encoded in it.
    """
    if charset == "utf-16" and not content.startswith((b"\xff\xfe", b"\xfe\xff")):
        charset = "utf-16be"
    elif charset == "utf-32" and not content.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        charset = "utf-32be"
    return content.decode(charset)


def _media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def _parameter(content_type: str, name: str) -> str | None:
    for parameter in content_type.split(";")[1:]:
        key, _, value = parameter.partition("=")
        if key.strip().lower() == name:
            return value.strip().strip('"').lower()
    return None
