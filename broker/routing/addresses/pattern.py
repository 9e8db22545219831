"""Keys of messages, and the patterns that subscribers give for them (DST-06).

Both are words separated by dots. In a pattern the word `*` stands for any one word and
`#` for any number of words, including none; as part of a longer word they mean themselves.
An empty text has no words.
"""

from typing import Final

from mypy_extensions import i64

from broker.routing.errors import InvalidAddress

SEPARATOR: Final = "."
ONE: Final = "*"
MANY: Final = "#"

WORDS_MAX: Final[i64] = 32
"""Maximum words in a topic's name, a key or a pattern: steps of a match
(`docs/design/hostile-input.md` S3)."""

MANY_MAX: Final[i64] = 2
"""Maximum `#` in a pattern (the same in RabbitMQ 4.3.5): each lets a match begin anew at every
word."""


def words_of(text: str) -> list[str]:
    """Return the words of a key or pattern."""
    return text.split(SEPARATOR) if text else []


def is_pattern(text: str) -> bool:
    """Return whether a word of `text` is a wildcard."""
    if ONE not in text and MANY not in text:
        return False
    words = text.split(SEPARATOR)
    return ONE in words or MANY in words


def is_key(text: str, bytes_max: int) -> bool:
    """Return whether `text` is short enough for a key; a longer subject is not meant as one."""
    return len(text) <= bytes_max and text.count(SEPARATOR) < WORDS_MAX


def check(text: str) -> list[str]:
    """Return the words of a pattern, name or key; raise InvalidAddress if `text` can be none."""
    words = words_of(text)
    if i64(len(words)) > WORDS_MAX:
        raise InvalidAddress(f"a topic or key has at most {WORDS_MAX} words, not {len(words)}")
    if i64(words.count(MANY)) > MANY_MAX:
        raise InvalidAddress(f"a pattern has at most {MANY_MAX} times {MANY}")
    return words


def normal(words: list[str]) -> list[str]:
    """Return the normal form of a pattern: the same for all patterns that match the same keys.

    Among neighbouring wildcards only the number of `*` matters, and whether there is a `#`,
    which is put last.
    """
    found: list[str] = []
    many = False
    for word in words:
        if word == MANY:
            many = True
            continue
        if many and word != ONE:
            found.append(MANY)
            many = False
        found.append(word)
    if many:
        found.append(MANY)
    return found


def matches(pattern: list[str], words: list[str]) -> bool:
    """Return whether `pattern`, in its normal form, matches `words`."""
    # reached[n]: the words of the pattern so far match the first n of `words`
    reached = [True, *([False] * len(words))]
    for word in pattern:
        before = reached
        if word == MANY:
            first = before.index(True) if True in before else len(before)
            reached = [at >= first for at in range(len(before))]
            continue
        reached = [False]
        for at, other in enumerate(words):
            reached.append(before[at] and word in (ONE, other))
    return reached[-1]
