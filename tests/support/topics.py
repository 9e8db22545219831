"""Routing keys and patterns: a slow and simple matcher as a reference, and examples of both."""

from hypothesis import strategies as st

WORDS = st.sampled_from(["a", "b", "c", "", "*", "#", "a*"])
"""Few words, so that examples often match.

Wildcards within a word, and as words of a key, are plain text.
"""

KEYS = st.lists(WORDS, max_size=6).map(".".join)
PATTERNS = KEYS.filter(lambda text: text.split(".").count("#") <= 2)


def stands_for(pattern: str, key: str) -> bool:
    """Return whether `pattern` matches `key`."""
    return _rest_stands_for(_words(pattern), _words(key))


def _words(text: str) -> list[str]:
    return text.split(".") if text else []


def _rest_stands_for(pattern: list[str], words: list[str]) -> bool:
    if not pattern:
        return not words
    if pattern[0] == "#":
        return any(_rest_stands_for(pattern[1:], words[at:]) for at in range(len(words) + 1))
    return (
        bool(words) and pattern[0] in ("*", words[0]) and _rest_stands_for(pattern[1:], words[1:])
    )
