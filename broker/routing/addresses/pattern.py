"""Keys of messages, and the patterns that subscribers give for them (DST-06).

Both are words with dots between. In a pattern the word `*` stands for any one word
and `#` for any number of them, none included; anywhere else in a word they mean themselves.
No text at all is no words.
"""

from typing import Final

from mypy_extensions import i64

from broker.routing.errors import InvalidAddress

SEPARATOR: Final = "."
ONE: Final = "*"
MANY: Final = "#"

WORDS_MAX: Final[i64] = 32
"""In a topic's name, a key or a pattern: a step of every match (`reliability.md` S3)."""

MANY_MAX: Final[i64] = 2
"""`#` in a pattern (RabbitMQ 4.3.5 has the same): each lets a match begin anew at every word."""


def words_of(text: str) -> list[str]:
    """The words of a key or pattern."""
    return text.split(SEPARATOR) if text else []


def is_pattern(text: str) -> bool:
    """Whether a word of `text` is a wildcard."""
    if ONE not in text and MANY not in text:
        return False
    words = text.split(SEPARATOR)
    return ONE in words or MANY in words


def is_key(text: str, bytes_max: int) -> bool:
    """Whether `text` has the size of a key; what is longer is the subject of something else."""
    return len(text) <= bytes_max and text.count(SEPARATOR) < WORDS_MAX


def check(text: str) -> list[str]:
    """The words of `text` as a pattern, or as a name or key; InvalidAddress where it is neither."""
    words = words_of(text)
    if i64(len(words)) > WORDS_MAX:
        raise InvalidAddress(f"a topic or key has at most {WORDS_MAX} words, not {len(words)}")
    if i64(words.count(MANY)) > MANY_MAX:
        raise InvalidAddress(f"a pattern has at most {MANY_MAX} times {MANY}")
    return words


def normal(words: list[str]) -> list[str]:
    """The pattern that matches the same, in the one form all such patterns share.

    Among neighbouring wildcards only the count of `*` matters, and whether there is a `#`:
    it comes last.
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
    """Whether `pattern` in its normal form stands for `words`."""
    # the words that each beginning of the pattern may have come to stand for, longest first
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
