"""JMS selectors as Spark conditions on the data source's columns, by the broker's grammar.

All of JMS 2.0 3.8.1.1 is evaluated as by the broker: three truth values, no comparison between
types, exact or approximate numbers. Two things differ: a whole number that overflows 64 bits in a
calculation is unknown, and the cost of a LIKE pattern is not limited.
"""

from __future__ import annotations

import math
import re
import struct
from functools import cache
from importlib.resources import files
from typing import Final, NoReturn, cast

from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken, VisitError
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from broker.jms.identifiers import RESERVED, first_wrong

GRAMMAR: Final = "routing/selector/grammar.lark"
"""The broker's own grammar, read as data: no code of `broker.routing` is needed here."""

LONG_MAX: Final = 2**63 - 1

KEYWORDS: Final = {word: word if word in ("TRUE", "FALSE") else f"_{word}" for word in RESERVED}


class SelectorError(ValueError):
    """An error because a text is no selector; it says why, and at which character."""


def fail(text: str, at: int) -> NoReturn:
    """Raise SelectorError for the character with the index `at`."""
    raise SelectorError(f"{text}, at character {at + 1}")


class Value:
    """The value of an expression in a row: at most one of these columns is not null.

    A column that is None is null in every row. `start` is the index of the expression's first
    character. `is_name` says that it is an identifier, with nothing around it.
    """

    def __init__(
        self,
        start: int,
        *,
        text: Column | None = None,
        exact: Column | None = None,
        approximate: Column | None = None,
        truth: Column | None = None,
        exists: Column | None = None,
        is_name: bool = False,
    ) -> None:
        self.start: Final = start
        self.text: Final = text
        self.exact: Final = exact
        self.approximate: Final = approximate
        self.truth: Final = truth
        self.exists: Final = exists
        self.is_name: Final = is_name

    def known(self) -> Column:
        """Return the condition that the expression has a value."""
        if self.exists is not None:
            return self.exists
        parts = [self.text, self.exact, self.approximate, self.truth]
        return _any([part.isNotNull() for part in parts if part is not None])

    def condition(self) -> Column:
        """Return the expression as a condition, unknown if its value is no boolean.

        Raise SelectorError if it can never be one.
        """
        if self.truth is None:
            if not self.is_name:
                fail("a condition is expected here", self.start)
            return F.lit(None).cast("boolean")
        return self.truth

    def number(self) -> Value:
        """Return the expression itself; raise SelectorError if it can never be a number."""
        if self.exact is None and self.approximate is None and not self.is_name:
            fail("a number is expected here", self.start)
        return self

    def double(self) -> Column:
        """Return a number as a double, null if the value is no number."""
        exact = None if self.exact is None else self.exact.cast("double")
        if self.approximate is None:
            return F.lit(None).cast("double") if exact is None else exact
        return self.approximate if exact is None else F.coalesce(self.approximate, exact)

    def name(self, operator: str) -> Value:
        """Return the expression itself; raise SelectorError, with `operator`, if it is no name."""
        if not self.is_name:
            fail(f"{operator} is asked of an identifier", self.start)
        return self


def _any(conditions: list[Column]) -> Column:
    found = conditions[0]
    for each in conditions[1:]:
        found = found | each
    return found


def _compared(left: Column | None, right: Column | None, operator: str) -> list[Column]:
    """Return the comparison of two columns, none if one of them never has a value."""
    if left is None or right is None:
        return []
    if operator == "=":
        return [left == right]
    if operator == "<>":
        return [left != right]
    if operator == "<":
        return [left < right]
    if operator == "<=":
        return [left <= right]
    return [left > right] if operator == ">" else [left >= right]


def compared(left: Value, right: Value, operator: str) -> Column:
    """Return the condition `left operator right`: unknown without a value, false between types."""
    answers: list[Column] = []
    if operator in {"=", "<>"}:
        answers += _compared(left.text, right.text, operator)
        answers += _compared(left.truth, right.truth, operator)
    answers += _compared(left.exact, right.exact, operator)
    x, y = left.double(), right.double()
    # in JMS, not-a-number is equal to no number; in Spark, it is the greatest one
    no_number = F.isnan(x) | F.isnan(y)
    answers.append(
        F.when(no_number, F.lit(operator == "<>")).otherwise(_compared(x, y, operator)[0])
    )
    return F.when(left.known() & right.known(), F.coalesce(*answers, F.lit(False)))


def calculated(left: Value, right: Value, operator: str) -> Value:
    """Return the value `left operator right`, unknown if either is no number."""
    exact = None
    if left.exact is not None and right.exact is not None:
        exact = _exactly(left.exact, right.exact, operator)
    x, y = left.double(), right.double()
    results = {"+": x + y, "-": x - y, "*": x * y}
    approximate = results.get(operator)
    if approximate is None:
        # division by zero, as in IEEE 754: infinite, or not a number
        infinite = F.when(y.cast("string") == "-0.0", -math.inf).otherwise(math.inf)
        approximate = F.when(y == 0, x * infinite).otherwise(F.try_divide(x, y))
    if left.exact is not None and right.exact is not None:
        both_exact = left.exact.isNotNull() & right.exact.isNotNull()
        approximate = F.when(~both_exact, approximate)
    return Value(left.start, exact=exact, approximate=approximate)


def _exactly(x: Column, y: Column, operator: str) -> Column:
    if operator == "+":
        return F.try_add(x, y)
    if operator == "-":
        return F.try_subtract(x, y)
    if operator == "*":
        return F.try_multiply(x, y)
    # -1 apart: the least number divided by it overflows
    quotient = F.call_function("div", x, F.when((y != 0) & (y != -1), y))
    return F.when(y == -1, F.try_subtract(F.lit(0).cast("bigint"), x)).otherwise(quotient)


class Builder(Transformer[Token, Value]):
    """The transformer of syntax trees to values, bottom up; its methods are the grammar's rules."""

    # -- conditions

    def disjunction(self, parts: list[Value]) -> Value:
        return Value(parts[0].start, truth=_any([part.condition() for part in parts]))

    def conjunction(self, parts: list[Value]) -> Value:
        found = parts[0].condition()
        for part in parts[1:]:
            found = found & part.condition()
        return Value(parts[0].start, truth=found)

    def not_(self, parts: list[Value]) -> Value:
        return Value(parts[0].start, truth=~parts[0].condition())

    def group(self, parts: list[Value]) -> Value:
        return parts[0]

    def equality(self, children: tuple[Value, Token, Value]) -> Value:
        left, operator, right = children
        return Value(left.start, truth=compared(left, right, str(operator)))

    def order(self, children: tuple[Value, Token, Value]) -> Value:
        left, operator, right = children
        return Value(left.start, truth=compared(left.number(), right.number(), str(operator)))

    def between(self, parts: list[Value]) -> Value:
        value, low, high = (part.number() for part in parts)
        return Value(value.start, truth=compared(value, low, ">=") & compared(value, high, "<="))

    def not_between(self, parts: list[Value]) -> Value:
        value, low, high = (part.number() for part in parts)
        return Value(value.start, truth=compared(value, low, "<") | compared(value, high, ">"))

    def in_(self, children: tuple[Value, list[str]]) -> Value:
        return self._in(children, outside=False)

    def not_in(self, children: tuple[Value, list[str]]) -> Value:
        return self._in(children, outside=True)

    def _in(self, children: tuple[Value, list[str]], *, outside: bool) -> Value:
        value = children[0].name("IN")
        return _of_text(
            value, None if value.text is None else value.text.isin(children[1]), outside
        )

    def strings(self, tokens: list[Token]) -> list[str]:
        return [_unquoted(token) for token in tokens]

    def like(self, children: tuple[Value, Token, Token | None]) -> Value:
        return self._like(children, differs=False)

    def not_like(self, children: tuple[Value, Token, Token | None]) -> Value:
        return self._like(children, differs=True)

    def _like(self, children: tuple[Value, Token, Token | None], *, differs: bool) -> Value:
        value = children[0].name("LIKE")
        pattern = _regular(children[1], children[2])
        return _of_text(value, None if value.text is None else value.text.rlike(pattern), differs)

    def is_null(self, parts: list[Value]) -> Value:
        value = parts[0].name("IS NULL")
        return Value(value.start, truth=~value.known())

    def is_not_null(self, parts: list[Value]) -> Value:
        value = parts[0].name("IS NOT NULL")
        return Value(value.start, truth=value.known())

    # -- numbers

    def sum(self, children: list[Value | Token]) -> Value:
        return _chain(children)

    def product(self, children: list[Value | Token]) -> Value:
        return _chain(children)

    def sign(self, children: tuple[Token, Value]) -> Value:
        word, value = children[0], children[1].number()
        start = _start(word)
        if word == "+":
            return Value(start, exact=value.exact, approximate=value.approximate)
        zero = F.lit(0).cast("bigint")
        return Value(
            start,
            exact=None if value.exact is None else F.try_subtract(zero, value.exact),
            approximate=None if value.approximate is None else -value.approximate,
        )

    # -- literals and names

    def string(self, tokens: list[Token]) -> Value:
        return Value(_start(tokens[0]), text=F.lit(_unquoted(tokens[0])))

    def decimal(self, tokens: list[Token]) -> Value:
        return _whole(tokens[0], 10)

    def hexadecimal(self, tokens: list[Token]) -> Value:
        return _whole(tokens[0], 16)

    def octal(self, tokens: list[Token]) -> Value:
        return _whole(tokens[0], 8)

    def approximate(self, tokens: list[Token]) -> Value:
        token = tokens[0]
        value = float(token.rstrip("fFdD"))
        if token[-1] in "fF" and abs(value) < 3.5e38:
            (value,) = struct.unpack("f", struct.pack("f", value))
        if math.isinf(value) or (token[-1] in "fF" and abs(value) >= 3.5e38):
            fail("a number is too large", _start(token))
        return Value(_start(token), approximate=F.lit(value))

    def true(self, tokens: list[Token]) -> Value:
        return Value(_start(tokens[0]), truth=F.lit(True))

    def false(self, tokens: list[Token]) -> Value:
        return Value(_start(tokens[0]), truth=F.lit(False))

    def identifier(self, tokens: list[Token]) -> Value:
        return _named(tokens[0])


def _of_text(value: Value, matches: Column | None, differs: bool) -> Value:
    """Return the result of an operator on texts: for other values false, or true if negated."""
    found = F.lit(False) if matches is None else F.coalesce(matches, F.lit(False))
    return Value(value.start, truth=F.when(value.known(), ~found if differs else found))


def _chain(children: list[Value | Token]) -> Value:
    first = children[0]
    assert isinstance(first, Value)
    found = first.number()
    for operator, other in zip(children[1::2], children[2::2], strict=True):
        assert isinstance(other, Value)
        found = calculated(found, other.number(), str(operator))
    return found


def _start(token: Token) -> int:
    return token.start_pos or 0


def _unquoted(token: Token) -> str:
    return token[1:-1].replace("''", "'")


def _whole(token: Token, base: int) -> Value:
    value = int(token.rstrip("lL"), base)
    if value > LONG_MAX:
        fail("a number is beyond 64 bits", _start(token))
    return Value(_start(token), exact=F.lit(value).cast("bigint"))


def _regular(pattern: Token, escape: Token | None) -> str:
    """Return a pattern of LIKE as a regular expression of Java."""
    character = "" if escape is None else _unquoted(escape)
    if escape is not None and len(character) != 1:
        fail("ESCAPE takes one character", _start(escape))
    found, is_literal = "", False
    for each in _unquoted(pattern):
        if not is_literal and each == character:
            is_literal = True
        elif is_literal or each not in "%_":
            found += re.escape(each)
            is_literal = False
        else:
            found += ".*" if each == "%" else "."
    if is_literal:
        fail("a pattern ends in its escape character", _start(pattern))
    return rf"(?s)\A{found}\z"


EXACT_TYPES: Final = ("byte", "short", "int", "long")
APPROXIMATE_TYPES: Final = ("float", "double")

TEXT_COLUMNS: Final = frozenset(
    {
        *("JMSMessageID", "JMSCorrelationID", "JMSType", "JMSXGroupID", "JMSXUserID"),
        "JMS_AMQP_REPLY_TO_GROUP_ID",
    }
)
"""The columns of text that a selector names as JMS does."""


def _named(token: Token) -> Value:
    """Return the value of a name: a header of JMS, or else a property.

    Raise SelectorError for a header that a selector cannot use.
    """
    name, start = str(token), _start(token)
    if name == "JMSDeliveryMode":
        words = F.when(F.col(name) == 2, "PERSISTENT").when(F.col(name) == 1, "NON_PERSISTENT")
        return Value(start, text=words, is_name=True)
    if name == "JMSTimestamp":
        # a message without a time has the time 0 (WD10 3.3.2)
        return Value(start, exact=F.coalesce(F.unix_millis(F.col(name)), F.lit(0)), is_name=True)
    if name in {"JMSPriority", "JMSXGroupSeq", "JMSXDeliveryCount"}:
        return Value(start, exact=F.col(name).cast("bigint"), is_name=True)
    if name in TEXT_COLUMNS:
        return Value(start, text=F.col(name), is_name=True)
    if name.startswith("JMS") and not name.startswith(("JMSX", "JMS_")):
        fail(f"a selector cannot ask for {name!r}", start)
    value = F.try_element_at(F.col("properties"), F.lit(name))
    kind = value["type"]
    return Value(
        start,
        text=F.when(kind.isin("string", "char"), value["string"]),
        exact=F.when(kind.isin(*EXACT_TYPES), value["long"]),
        approximate=F.when(kind.isin(*APPROXIMATE_TYPES), value["double"]),
        truth=F.when(kind == "boolean", value["boolean"]),
        exists=F.coalesce(kind != "null", F.lit(False)),
        is_name=True,
    )


def _classified(token: Token) -> Token:
    keyword = KEYWORDS.get(token.upper())
    if keyword is not None:
        token.type = keyword
    elif not token.isascii():
        at = first_wrong(token)
        if at >= 0:
            fail(f"{token[at]!r} is unexpected", _start(token) + at)
    return token


@cache
def _grammar() -> Lark:
    return Lark(
        (files("broker") / GRAMMAR).read_text(encoding="utf-8"),
        parser="lalr",
        lexer="basic",
        transformer=Builder(),
        lexer_callbacks={"NAME": _classified},
    )


def condition(text: str) -> Column:
    """Return the condition that `text` selects a row; raise SelectorError if it is no selector.

    Null, for unknown, does not select. A session of Spark must exist.
    """
    try:
        value = _grammar().parse(text)
    except UnexpectedCharacters as error:
        at = cast(int, error.pos_in_stream)  # declared as None, but set when raised
        fail("a string does not end" if text[at] == "'" else f"{text[at]!r} is unexpected", at)
    except UnexpectedToken as error:
        if error.token.type != "$END":
            fail(f"{str(error.token)!r} is unexpected", _start(error.token))
        fail("it ends too early", len(text))
    except VisitError as error:
        if isinstance(error.orig_exc, SelectorError):
            raise error.orig_exc from None
        raise
    except UnexpectedInput as error:
        raise SelectorError(str(error)) from None
    assert isinstance(value, Value)
    return value.condition()
