"""Parses the text of a selector into its tree. Imports lark; not compiled, since lark calls it."""

from __future__ import annotations

import math
import struct
from typing import Final, cast, final

from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from broker.jms.identifiers import RESERVED, first_wrong
from broker.routing.errors import InvalidSelector
from broker.routing.selector.expression import (
    ACCEPTED,
    HEADERS,
    And,
    ApplicationProperty,
    Arithmetic,
    Between,
    Equality,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    Order,
    Sign,
)
from broker.routing.selector.like import Pattern

CHARACTERS_MAX: Final = 4096
TOKENS_MAX: Final = 200
DEPTH_MAX: Final = 16
"""Maximum nesting of parentheses, `NOT`s and signs. Evaluation recurses, in compiled code that does
not check its depth."""

EXACT_MAX: Final = 2**63
"""Magnitude of the least Java long; hexadecimal and octal literals are not read as negative."""

EXCERPT: Final = 20
"""Maximum characters of a selector that an error repeats."""

KEYWORDS: Final[dict[str, str]] = {
    # the tree needs the literals, and none of the other words
    word: word if word in ("TRUE", "FALSE") else f"_{word}"
    for word in RESERVED
}

ANY: Final = ""
BOOLEAN: Final = "a condition"
NUMBER: Final = "a number"
STRING: Final = "a string"


@final
class TreePart:
    """A part of the tree while it is built: the kind of its value, and where it starts in the text.

    `depth` is the nesting around its innermost part, DEPTH_MAX at most.
    """

    def __init__(self, expression: Expression, kind: str, start: int, *, depth: int = 0) -> None:
        if depth > DEPTH_MAX:
            raise InvalidSelector(f"nesting is deeper than {DEPTH_MAX}", start)
        self.expression: Final = expression
        self.kind: Final = kind
        self.start: Final = start
        self.depth: Final = depth

    def of(self, kind: str) -> Expression:
        """Return its expression. InvalidSelector if it is known to be of another kind."""
        if self.kind not in (ANY, kind):
            raise InvalidSelector(f"{kind} is expected here, not {self.kind}", self.start)
        return self.expression

    def identifier(self, operator: str) -> Expression:
        """Return its expression. InvalidSelector if it is not the identifier `operator` takes."""
        if not isinstance(self.expression, (ApplicationProperty, *HEADER_CLASSES)):
            raise InvalidSelector(f"{operator} is asked of an identifier", self.start)
        return self.expression


HEADER_CLASSES: Final = tuple({type(header) for header in HEADERS.values()})


def condition(expression: Expression, parts: list[TreePart]) -> TreePart:
    """Return a condition made of `parts`."""
    return TreePart(expression, BOOLEAN, parts[0].start, depth=max(part.depth for part in parts))


class Builder(Transformer[Token, TreePart]):
    """Builds the parts from the innermost outwards; its methods are the rules of `grammar.lark`."""

    def disjunction(self, parts: list[TreePart]) -> TreePart:
        return condition(Or([part.of(BOOLEAN) for part in parts]), parts)

    def conjunction(self, parts: list[TreePart]) -> TreePart:
        return condition(And([part.of(BOOLEAN) for part in parts]), parts)

    def not_(self, parts: list[TreePart]) -> TreePart:
        (part,) = parts
        return TreePart(Not(part.of(BOOLEAN)), BOOLEAN, part.start, depth=part.depth + 1)

    def group(self, parts: list[TreePart]) -> TreePart:
        (part,) = parts
        return TreePart(part.expression, part.kind, part.start, depth=part.depth + 1)

    # -- predicates

    def equality(self, children: tuple[TreePart, Token, TreePart]) -> TreePart:
        left, operator, right = children
        differs = operator == "<>"
        return condition(
            Equality(left.expression, right.expression, differs=differs), [left, right]
        )

    def order(self, children: tuple[TreePart, Token, TreePart]) -> TreePart:
        left, operator, right = children
        accepted = ACCEPTED[str(operator)]
        return condition(Order(left.of(NUMBER), right.of(NUMBER), accepted), [left, right])

    def between(self, parts: list[TreePart]) -> TreePart:
        return self._between(parts, outside=False)

    def not_between(self, parts: list[TreePart]) -> TreePart:
        return self._between(parts, outside=True)

    def _between(self, parts: list[TreePart], *, outside: bool) -> TreePart:
        value, low, high = (part.of(NUMBER) for part in parts)
        return condition(Between(value, low, high, outside=outside), parts)

    def in_(self, children: tuple[TreePart, list[str]]) -> TreePart:
        value, strings = children
        return condition(In(value.identifier("IN"), strings, outside=False), [value])

    def not_in(self, children: tuple[TreePart, list[str]]) -> TreePart:
        value, strings = children
        return condition(In(value.identifier("IN"), strings, outside=True), [value])

    def strings(self, tokens: list[Token]) -> list[str]:
        return [unquoted(token) for token in tokens]

    def like(self, children: tuple[TreePart, Token, Token | None]) -> TreePart:
        value, pattern, escape = children
        expression = Like(value.identifier("LIKE"), like_pattern(pattern, escape), differs=False)
        return condition(expression, [value])

    def not_like(self, children: tuple[TreePart, Token, Token | None]) -> TreePart:
        value, pattern, escape = children
        expression = Like(value.identifier("LIKE"), like_pattern(pattern, escape), differs=True)
        return condition(expression, [value])

    def is_null(self, parts: list[TreePart]) -> TreePart:
        (value,) = parts
        return condition(IsNull(value.identifier("IS NULL"), present=False), parts)

    def is_not_null(self, parts: list[TreePart]) -> TreePart:
        (value,) = parts
        return condition(IsNull(value.identifier("IS NOT NULL"), present=True), parts)

    # -- arithmetic

    def sum(self, children: list[TreePart | Token]) -> TreePart:
        return arithmetic(children)

    def product(self, children: list[TreePart | Token]) -> TreePart:
        return arithmetic(children)

    def sign(self, children: tuple[Token, TreePart]) -> TreePart:
        sign, part = children
        expression = Sign(part.of(NUMBER), negative=sign == "-")
        return TreePart(expression, NUMBER, start_of(sign), depth=part.depth + 1)

    # -- values

    def string(self, tokens: list[Token]) -> TreePart:
        return TreePart(Literal(unquoted(tokens[0])), STRING, start_of(tokens[0]))

    def decimal(self, tokens: list[Token]) -> TreePart:
        return exact(tokens[0], 10)

    def hexadecimal(self, tokens: list[Token]) -> TreePart:
        return exact(tokens[0], 16)

    def octal(self, tokens: list[Token]) -> TreePart:
        return exact(tokens[0], 8)

    def approximate(self, tokens: list[Token]) -> TreePart:
        return TreePart(Literal(approximate(tokens[0])), NUMBER, start_of(tokens[0]))

    def true(self, tokens: list[Token]) -> TreePart:
        return TreePart(Literal(True), BOOLEAN, start_of(tokens[0]))

    def false(self, tokens: list[Token]) -> TreePart:
        return TreePart(Literal(False), BOOLEAN, start_of(tokens[0]))

    def identifier(self, tokens: list[Token]) -> TreePart:
        return TreePart(identifier(tokens[0]), ANY, start_of(tokens[0]))


def start_of(token: Token) -> int:
    """Return the position at which `token` starts in the text."""
    return token.start_pos or 0


def arithmetic(children: list[TreePart | Token]) -> TreePart:
    """Return the part made of `children`: parts with operators between them."""
    parts = [child for child in children if isinstance(child, TreePart)]
    operators = [str(child) for child in children if not isinstance(child, TreePart)]
    first, *others = [part.of(NUMBER) for part in parts]
    depth = max(part.depth for part in parts)
    return TreePart(Arithmetic(first, operators, others), NUMBER, parts[0].start, depth=depth)


def identifier(token: Token) -> Expression:
    """Return the expression of a name. InvalidSelector for a JMS header that 3.8.1.1 excludes."""
    name = str(token)
    header = HEADERS.get(name)
    if header is not None:
        return header
    if name.startswith("JMS") and not name.startswith(("JMSX", "JMS_")):
        raise InvalidSelector(f"a selector cannot ask for {excerpt(name)}", start_of(token))
    return ApplicationProperty(name)


def unquoted(token: Token) -> str:
    """Return the string that a literal denotes."""
    return token[1:-1].replace("''", "'")


def like_pattern(pattern: Token, escape: Token | None) -> Pattern:
    """Return the pattern of a LIKE. InvalidSelector if it or its ESCAPE is invalid."""
    character = ""
    if escape is not None:
        character = unquoted(escape)
        if len(character) != 1:
            raise InvalidSelector("ESCAPE takes one character", start_of(escape))
    read = Pattern(unquoted(pattern), character)
    if read.ends_escaped:
        raise InvalidSelector("a pattern ends in its escape character", start_of(pattern))
    return read


def exact(token: Token, base: int) -> TreePart:
    """Return the part of a Java integer literal. InvalidSelector beyond 64 bits."""
    value = int(token.rstrip("lL"), base)
    if value > EXACT_MAX:
        raise InvalidSelector("a number is beyond 64 bits", start_of(token))
    return TreePart(Literal(value), NUMBER, start_of(token))


def approximate(token: Token) -> float:
    """Return the value of a Java floating point literal; one with `f` is rounded to 32 bits.

    InvalidSelector if it is too large.
    """
    value = float(token.rstrip("fFdD"))
    if token[-1] in "fF" and not math.isinf(value):
        try:
            (value,) = struct.unpack("f", struct.pack("f", value))
        except OverflowError:
            value = math.inf
    if math.isinf(value):
        raise InvalidSelector("a number is too large", start_of(token))
    return value


def classified(token: Token) -> Token:
    """Type a name as a keyword, in any case, or a Java identifier; InvalidSelector if neither."""
    keyword = KEYWORDS.get(token.upper())
    if keyword is not None:
        token.type = keyword
    elif not token.isascii():
        check_name(token)
    return token


def check_name(token: Token) -> None:
    """Raise InvalidSelector if `token` is no Java identifier."""
    at = first_wrong(token)
    if at >= 0:
        raise InvalidSelector(unexpected(token[at]), start_of(token) + at)


# -- errors, with their positions


def excerpt(text: str) -> str:
    return repr(text if len(text) <= EXCERPT else f"{text[:EXCERPT]}…")


def unexpected(text: str) -> str:
    return f"{excerpt(text)} is unexpected"


def complaint(error: UnexpectedInput, text: str) -> InvalidSelector:
    """Return the error that lark found, in the broker's own words."""
    if isinstance(error, UnexpectedCharacters):
        at = cast(int, error.pos_in_stream)  # declared as None, but set in each that is raised
        if text[at] == "'":
            return InvalidSelector("a string does not end", at)
        return InvalidSelector(unexpected(text[at]), at)
    if isinstance(error, UnexpectedToken) and error.token.type != "$END":
        return InvalidSelector(unexpected(str(error.token)), start_of(error.token))
    return InvalidSelector("it ends too early", len(text))


GRAMMAR: Final = Lark.open(
    "grammar.lark",
    rel_to=__file__,
    parser="lalr",
    lexer="basic",
    transformer=Builder(),
    lexer_callbacks={"NAME": classified},
)


def parse(text: str) -> Expression:
    """Return the condition of `text`. InvalidSelector, with the position, if it is none."""
    if len(text) > CHARACTERS_MAX:
        raise InvalidSelector(f"it has more than {CHARACTERS_MAX} characters", CHARACTERS_MAX)
    try:
        for count, token in enumerate(GRAMMAR.lex(text)):
            if count == TOKENS_MAX:
                raise InvalidSelector(f"it has more than {TOKENS_MAX} words", start_of(token))
        part = cast("TreePart", GRAMMAR.parse(text))
    except UnexpectedInput as error:
        raise complaint(error, text) from None
    return part.of(BOOLEAN)
