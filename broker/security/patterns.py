"""Patterns of rules, such as `queue:orders.#`: their grammar, and variables in them.

A pattern is a kind of resource, a colon, and a text. For queues and topics the text has words
separated by dots: `*` is one word, `#` any number of words, as in addresses of subscribers
(DST-06). For other kinds the text is a glob in which `*` is any characters. All other characters
are literal. `{user}` and `{client_id}` stand for the user and the client id of a connection. The
text is parsed before they are replaced, so no value adds a wildcard, or changes where a name ends
and a key begins (`docs/design/hostile-input.md` Z4).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, final

from broker.security.resources import (
    EVERY,
    NAMES,
    QUEUE,
    RESERVED,
    SUBSCRIPTION,
    TOPIC,
    VERBS,
    is_own_name,
    names,
)

Token = str | int
"""A literal word (in a glob: a literal part), or one of the numbers below."""

Tokens = tuple[Token, ...]

ONE: Final = 1
"""Any one word: `*` of queues and topics."""

MANY: Final = 2
"""Any number of words, including none: `#` of queues and topics. In a glob, any characters."""

PLAIN: Final = 3
"""Any one word that does not begin with `$`."""

KEY: Final = 4
"""The border between the name and the key of a topic, or client id and name of a subscription.

No wildcard stands for it.
"""

WORDED: Final = (QUEUE, TOPIC)
"""Kinds whose patterns have words."""

PATTERN_BYTES_MAX: Final = 600
"""Maximum bytes of a pattern in UTF-8: two names of 255 bytes each, and their kind."""

WORDS_MAX: Final = 32
"""Maximum words of a name or of a key in a pattern, as in addresses of subscribers."""

MANY_MAX: Final = 2
"""Maximum `#` of a name or of a key in a pattern, as in addresses of subscribers."""

STARS_MAX: Final = 4
"""Maximum `*` of a glob."""

USER: Final = "{user}"
CLIENT_ID: Final = "{client_id}"
VARIABLES: Final = (USER, CLIENT_ID)

VARIABLE: Final = re.compile(r"(\{\w*\})")

CLASS_BEGINNING: Final = re.compile(
    r"/(?:(?:queue|topic)/(?:durable|transient|tmp)|(?:durable|transient|tmp)/(?:queue|topic))/"
)
"""Beginning of an address with a class (DST-10). Resources are named without it."""


class PatternError(ValueError):
    """A pattern is invalid. The message quotes it and says what is allowed."""


@final
class Template:
    """A literal with variables: texts and `{user}` or `{client_id}`, in their order."""

    def __init__(self, parts: tuple[str, ...]) -> None:
        self.parts: Final = parts

    def filled(self, user: str, client_id: str) -> str:
        """Return the literal for a connection, empty if a variable has no value."""
        values = {USER: user, CLIENT_ID: client_id}
        found = [values.get(part, part) for part in self.parts]
        return "".join(found) if all(found) else ""


Piece = Token | Template


@final
class RulePattern:
    """A parsed pattern. `text` is the operator's spelling.

    `name` are the pieces of the name, `key` those of a topic's key or of a subscription's name;
    `key` is None if a topic's rule says nothing about keys, and for kinds that have none.
    """

    def __init__(
        self, text: str, *, kind: str, name: tuple[Piece, ...], key: tuple[Piece, ...] | None
    ) -> None:
        self.text: Final = text
        self.kind: Final = kind
        self.name: Final = name
        self.key: Final = key
        variables = {
            part
            for piece in (*name, *(key or ()))
            if isinstance(piece, Template)
            for part in piece.parts
        }
        self.has_user: Final = USER in variables
        self.has_client_id: Final = CLIENT_ID in variables
        self._tokens: Final[dict[bool, tuple[Tokens | None]]] = {}

    def has_variables(self) -> bool:
        return self.has_user or self.has_client_id

    def filled(self, user: str, client_id: str) -> RulePattern | None:
        """Return the pattern with the values of a connection as literals.

        Return None if a variable has no value there: the pattern then matches nothing.
        """
        if not self.has_variables():
            return self
        name = self._literals(self.name, user, client_id)
        key = () if self.key is None else self._literals(self.key, user, client_id)
        if name is None or key is None:
            return None
        return RulePattern(
            self.text, kind=self.kind, name=name, key=None if self.key is None else key
        )

    def _literals(
        self, pieces: tuple[Piece, ...], user: str, client_id: str
    ) -> tuple[Piece, ...] | None:
        found: list[Piece] = []
        for piece in pieces:
            if not isinstance(piece, Template):
                found.append(piece)
                continue
            text = piece.filled(user, client_id)
            if not text:
                return None
            # a dot in a value ends a word, as in the names that the pattern is compared with
            found.extend(words_of(text) if self.kind in WORDED else [text])
        return tuple(found)

    def tokens(self, *, is_keyed: bool) -> Tokens | None:
        """Return the tokens of a pattern without variables.

        `is_keyed` says whether topics are compared with the keys of their messages. If not, a
        topic's pattern with a key matches nothing, and the result is None.
        """
        known = self._tokens.get(is_keyed)
        if known is None:
            known = self._tokens[is_keyed] = (self._made_tokens(is_keyed=is_keyed),)
        return known[0]

    def _made_tokens(self, *, is_keyed: bool) -> Tokens | None:
        if self.kind == TOPIC and not is_keyed:
            return None if self.key is not None else _no_templates(self.name)
        key = (MANY,) if self.kind == TOPIC and self.key is None else self.key
        name = _no_templates(self.name)
        return name if key is None else (*name, KEY, *_no_templates(key))


def _no_templates(pieces: tuple[Piece, ...]) -> Tokens:
    assert not any(isinstance(piece, Template) for piece in pieces)
    return tuple(piece for piece in pieces if not isinstance(piece, Template))


def words_of(text: str) -> list[str]:
    """Return the words of a name or key; an empty text has none."""
    return text.split(".") if text else []


def parse(text: str) -> RulePattern:
    """Return the pattern that `text` is. Raise PatternError if it is none."""
    if len(text.encode(errors="surrogatepass")) > PATTERN_BYTES_MAX:
        raise PatternError(f"{text[:40]!r}…: a pattern has at most {PATTERN_BYTES_MAX} bytes")
    kind, colon, rest = text.partition(":")
    if not colon or kind not in VERBS:
        raise PatternError(f"{text!r}: a pattern is KIND:TEXT, with a KIND of {names()}")
    if not rest or not rest.isprintable():
        raise PatternError(f"{text!r}: the text behind {kind}: is empty or not printable")
    _check_variables(text)
    if kind in NAMES and rest not in (EVERY, *NAMES[kind]):
        raise PatternError(f"{text!r}: only {kind}: with {', '.join(NAMES[kind])} or {EVERY}")
    if kind in WORDED:
        return _words_pattern(text, kind, rest)
    if kind == SUBSCRIPTION:
        return _subscription_pattern(text, rest)
    return RulePattern(text, kind=kind, name=tuple(_glob(text, rest)), key=None)


def _check_variables(text: str) -> None:
    for found in VARIABLE.findall(text):
        if found not in VARIABLES:
            raise PatternError(f"{text!r}: {found} is no variable; only {USER} and {CLIENT_ID} are")


def _words_pattern(text: str, kind: str, rest: str) -> RulePattern:
    if is_own_name(rest):
        raise PatternError(
            f"{text!r}: the broker's own names have the kinds temporary:, subscription: and"
            " management:"
        )
    if CLASS_BEGINNING.match(rest):
        raise PatternError(f"{text!r}: a rule names a {kind} without the prefix of its class")
    name, key = rest, ""
    if kind == TOPIC:
        name, _, key = rest.partition("/")
    if not name:
        raise PatternError(f"{text!r}: lacks the name of a {kind}")
    pieces = tuple(_words(text, name))
    behind = tuple(_words(text, key)) if key else None
    return RulePattern(text, kind=kind, name=pieces, key=None if behind == (MANY,) else behind)


def _subscription_pattern(text: str, rest: str) -> RulePattern:
    if rest == EVERY:
        return RulePattern(text, kind=SUBSCRIPTION, name=(MANY,), key=(MANY,))
    client_id, slash, name = rest.partition("/")
    if not slash or not client_id or not name:
        raise PatternError(f"{text!r}: write subscription:CLIENT/NAME, or subscription:{EVERY}")
    return RulePattern(
        text,
        kind=SUBSCRIPTION,
        name=tuple(_glob(text, client_id)),
        key=tuple(_glob(text, name)),
    )


def _words(text: str, part: str) -> Iterator[Piece]:
    words = words_of(part)
    if len(words) > WORDS_MAX:
        raise PatternError(f"{text!r}: a name or key has at most {WORDS_MAX} words")
    if words.count("#") > MANY_MAX:
        raise PatternError(f"{text!r}: a name or key has at most {MANY_MAX} times #")
    return iter(normal([_word(each) for each in words]))


def _word(word: str) -> Piece:
    if word == "*":
        return ONE
    return MANY if word == "#" else _literal(word)


def _literal(text: str) -> str | Template:
    parts = tuple(part for part in VARIABLE.split(text) if part)
    return Template(parts) if USER in parts or CLIENT_ID in parts else text


def _glob(text: str, part: str) -> Iterator[Piece]:
    runs = re.sub(r"\*+", "*", part).split("*")
    if len(runs) - 1 > STARS_MAX:
        raise PatternError(f"{text!r}: has more than {STARS_MAX} times *")
    for number, run in enumerate(runs):
        if number:
            yield MANY
        if run:
            yield _literal(run)


def normal(pieces: Sequence[Piece]) -> list[Piece]:
    """Return the normal form of words: among neighbouring wildcards, one `#` at most and last."""
    found: list[Piece] = []
    many = False
    for piece in pieces:
        if piece == MANY:
            many = True
            continue
        if many and piece != ONE:
            found.append(MANY)
            many = False
        found.append(piece)
    if many:
        found.append(MANY)
    return found


def all_but_reserved(kind: str) -> RulePattern:
    """Return the pattern of all queues, or all topics, whose name does not begin with `$`.

    Operators cannot write it; the role `application` has it.
    """
    return RulePattern(f"{kind}:# but {RESERVED}…", kind=kind, name=(PLAIN, MANY), key=None)


def glob_matches(pieces: Sequence[Token], text: str) -> bool:
    """Return whether a glob, in tokens of `RulePattern.tokens` without KEY, matches `text`.

    The steps grow with the length of `text` times the number of wildcards.
    """
    if not pieces:
        return not text
    first, last = pieces[0], pieces[-1]
    if len(pieces) == 1:
        return first in (MANY, text)
    at, end = 0, len(text)
    if isinstance(first, str):
        if not text.startswith(first):
            return False
        at = len(first)
    if isinstance(last, str):
        if not text.endswith(last):
            return False
        end -= len(last)
    for piece in pieces[1:-1]:
        if isinstance(piece, str):
            at = text.find(piece, at, end)
            if at < 0:
                return False
            at += len(piece)
    return at <= end
