"""Media types and charsets, as WD10 3.3.4.3 and EARLY 4.3.7.3 list them."""

from __future__ import annotations

from typing import Final

import pytest

from broker.jms import Profile
from broker.jms.content_type import CHARSETS, charset_of, decoded, is_java_object, is_text

# content-type, whether it is text in WD10, whether it is text in EARLY
TEXTUAL: Final = [
    ("text/plain", True, True),
    ("text/html", True, False),
    ("text/anything", True, False),
    ("application/xml", True, False),
    ("application/xml-dtd", True, False),
    ("application/soap+xml", True, False),
    ("application/json", True, False),
    ("application/ld+json", True, False),
    ("application/javascript", True, False),
    ("application/ecmascript", True, False),
    ("TEXT/Plain; charset=utf-8", True, True),
    (" text/plain ;x=y", True, True),
    ("application/octet-stream", False, False),
    ("application/x-java-serialized-object", False, False),
    ("application/xmlish", False, False),
    ("image/svg+xml", False, False),
    ("textual/plain", False, False),
    ("text", False, False),
    ("", False, False),
    (None, False, False),
]


@pytest.mark.requirement("MAP-07")
@pytest.mark.parametrize(("content_type", "in_wd10", "in_early"), TEXTUAL)
def test_what_is_text(content_type: str | None, in_wd10: bool, in_early: bool) -> None:
    assert is_text(content_type, Profile.WD10) is in_wd10
    assert is_text(content_type, Profile.EARLY) is in_early


@pytest.mark.requirement("MAP-07")
@pytest.mark.parametrize(
    ("content_type", "charset"),
    [
        (None, "utf-8"),
        ("text/plain", "utf-8"),
        ("text/plain; charset=", "utf-8"),
        ("text/plain; charset=ISO-8859-1", "iso-8859-1"),
        ('text/plain; a=b ; Charset = "utf-16BE"', "utf-16be"),
        ("text/plain; charset=idna", None),
        ("text/plain; charset=hex", None),
        ("text/plain; charset=no-such", None),
    ],
)
def test_the_charset_is_utf_8_unless_it_is_named(
    content_type: str | None, charset: str | None
) -> None:
    assert charset_of(content_type) == charset


@pytest.mark.requirement("MAP-07")
@pytest.mark.parametrize(
    ("content_type", "is_java"),
    [
        ("application/x-java-serialized-object", True),
        ("application/X-Java-Serialized-Object; x=y", True),
        ("application/octet-stream", False),
        (None, False),
    ],
)
def test_serialized_objects(content_type: str | None, is_java: bool) -> None:
    assert is_java_object(content_type) is is_java


@pytest.mark.parametrize("charset", sorted(CHARSETS))
def test_every_charset_can_be_read(charset: str) -> None:
    assert decoded("Ab1".encode(charset), charset) == "Ab1"


@pytest.mark.parametrize("charset", ["utf-16", "utf-32"])
def test_without_a_mark_the_big_end_comes_first(charset: str) -> None:
    assert decoded("é".encode(f"{charset}be"), charset) == "é"
    assert decoded(f"\ufeff{'é'}".encode(f"{charset}le"), charset) == "é"
    assert decoded(f"\ufeff{'é'}".encode(f"{charset}be"), charset) == "é"
