"""JMS selectors as conditions of SQL on the data source's columns, by the broker's grammar.

All of JMS 2.0 3.8.1.1 is evaluated as by the broker: three truth values, no comparison between
types, exact or approximate numbers. Four things differ: a whole number that overflows 64 bits in a
calculation is unknown, and so is a ulong beyond them; the cost of a LIKE pattern is not limited; a
calculation of very many steps is refused.
"""

from __future__ import annotations

import math
import re
import struct
from functools import cache
from importlib.resources import files
from typing import Final, NoReturn, cast
from urllib.parse import quote

from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken, VisitError

from broker.jms.identifiers import RESERVED, first_wrong
from pyspark_amqp.engines.engine import PLAIN, literal
from pyspark_amqp.errors import SelectorError

GRAMMAR: Final = "routing/selector/grammar.lark"
"""The broker's own grammar, read as data: no code of `broker.routing` is needed here."""

LONG_MAX: Final = 2**63 - 1

CALCULATION_MAX: Final = 64 * 1024
"""Maximum characters of a calculation in SQL, where its operands stand several times: each division
more than doubles it, and an engine would take minutes to plan the query."""

KEYWORDS: Final = {word: word if word in ("TRUE", "FALSE") else f"_{word}" for word in RESERVED}


def fail(text: str, at: int) -> NoReturn:
    """Raise SelectorError for the character with the index `at`."""
    raise SelectorError(f"{text}, at character {at + 1}")


UNKNOWN: Final = "CAST(NULL AS BOOLEAN)"
INFINITE: Final = "CAST('Infinity' AS DOUBLE)"


class Value:
    """The value of an expression in a row: at most one of these expressions of SQL is not null.

    One that is None is null in every row. `start` is the index of the expression's first character
    in the selector. `is_name` says that it is an identifier, with nothing around it.
    """

    def __init__(
        self,
        start: int,
        *,
        text: str | None = None,
        exact: str | None = None,
        approximate: str | None = None,
        truth: str | None = None,
        exists: str | None = None,
        is_name: bool = False,
    ) -> None:
        self.start: Final = start
        self.text: Final = text
        self.exact: Final = exact
        self.approximate: Final = approximate
        self.truth: Final = truth
        self.exists: Final = exists
        self.is_name: Final = is_name

    def known(self) -> str:
        """Return the condition that the expression has a value."""
        if self.exists is not None:
            return self.exists
        parts = [self.text, self.exact, self.approximate, self.truth]
        return _any([f"{part} IS NOT NULL" for part in parts if part is not None])

    def condition(self) -> str:
        """Return the expression as a condition, unknown if its value is no boolean.

        Raise SelectorError if it can never be one.
        """
        if self.truth is None:
            if not self.is_name:
                fail("a condition is expected here", self.start)
            return UNKNOWN
        return self.truth

    def number(self) -> Value:
        """Return the expression itself; raise SelectorError if it can never be a number."""
        if self.exact is None and self.approximate is None and not self.is_name:
            fail("a number is expected here", self.start)
        return self

    def double(self) -> str:
        """Return a number as a double, null if the value is no number."""
        exact = None if self.exact is None else f"CAST({self.exact} AS DOUBLE)"
        if self.approximate is None:
            return "CAST(NULL AS DOUBLE)" if exact is None else exact
        return self.approximate if exact is None else f"coalesce({self.approximate}, {exact})"

    def name(self, operator: str) -> Value:
        """Return the expression itself; raise SelectorError, with `operator`, if it is no name."""
        if not self.is_name:
            fail(f"{operator} is asked of an identifier", self.start)
        return self


def _quoted(text: str) -> str:
    """Return a text as both engines read it, whatever its characters are."""
    if PLAIN.fullmatch(text):
        return literal(text)
    return f"url_decode('{quote(text, safe='')}')"


def _any(conditions: list[str]) -> str:
    return f"({' OR '.join(conditions)})"


def compared(left: Value, right: Value, operator: str) -> str:
    """Return the condition `left operator right`: unknown without a value, false between types."""
    answers: list[str] = []
    kinds = [(left.exact, right.exact)]
    if operator in {"=", "<>"}:
        kinds += [(left.text, right.text), (left.truth, right.truth)]
    answers += [f"{x} {operator} {y}" for x, y in kinds if x is not None and y is not None]
    x, y = left.double(), right.double()
    # in JMS, not-a-number is equal to no number; in SQL, it is the greatest one
    differs = "TRUE" if operator == "<>" else "FALSE"
    answers.append(f"CASE WHEN isnan({x}) OR isnan({y}) THEN {differs} ELSE {x} {operator} {y} END")
    return (
        f"(CASE WHEN {left.known()} AND {right.known()}"
        f" THEN coalesce({', '.join(answers)}, FALSE) END)"
    )


def calculated(left: Value, right: Value, operator: str) -> Value:
    """Return the value `left operator right`, unknown if either is no number."""
    exact = None
    if left.exact is not None and right.exact is not None:
        exact = _exactly(left.exact, right.exact, operator)
    x, y = left.double(), right.double()
    approximate = f"({x} {operator} {y})"
    if operator == "/":
        # division by zero, as in IEEE 754: infinite, or not a number
        infinite = f"CASE WHEN CAST({y} AS STRING) = '-0.0' THEN -{INFINITE} ELSE {INFINITE} END"
        approximate = f"(CASE WHEN {y} = 0 THEN {x} * {infinite} ELSE try_divide({x}, {y}) END)"
    if left.exact is not None and right.exact is not None:
        is_exact = f"{left.exact} IS NOT NULL AND {right.exact} IS NOT NULL"
        approximate = f"(CASE WHEN NOT ({is_exact}) THEN {approximate} END)"
    if len(approximate) > CALCULATION_MAX:
        fail("a calculation has too many steps for SQL", left.start)
    return Value(left.start, exact=exact, approximate=approximate)


FUNCTIONS: Final = {"+": "try_add", "-": "try_subtract", "*": "try_multiply"}


def _exactly(x: str, y: str, operator: str) -> str:
    if operator in FUNCTIONS:
        return f"{FUNCTIONS[operator]}({x}, {y})"
    # -1 apart: the least number divided by it overflows
    divisor = f"CASE WHEN {y} NOT IN (0, -1) THEN {y} END"
    return f"(CASE WHEN {y} = -1 THEN {_negative(x)} ELSE div({x}, {divisor}) END)"


def _negative(x: str) -> str:
    return f"try_subtract(CAST(0 AS BIGINT), {x})"


class Builder(Transformer[Token, Value]):
    """The transformer of syntax trees to values, bottom up; its methods are the grammar's rules."""

    # -- conditions

    def disjunction(self, parts: list[Value]) -> Value:
        return Value(parts[0].start, truth=_any([part.condition() for part in parts]))

    def conjunction(self, parts: list[Value]) -> Value:
        found = " AND ".join(part.condition() for part in parts)
        return Value(parts[0].start, truth=f"({found})")

    def not_(self, parts: list[Value]) -> Value:
        return Value(parts[0].start, truth=f"(NOT {parts[0].condition()})")

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
        both = f"({compared(value, low, '>=')} AND {compared(value, high, '<=')})"
        return Value(value.start, truth=both)

    def not_between(self, parts: list[Value]) -> Value:
        value, low, high = (part.number() for part in parts)
        return Value(
            value.start, truth=_any([compared(value, low, "<"), compared(value, high, ">")])
        )

    def in_(self, children: tuple[Value, list[str]]) -> Value:
        return self._in(children, outside=False)

    def not_in(self, children: tuple[Value, list[str]]) -> Value:
        return self._in(children, outside=True)

    def _in(self, children: tuple[Value, list[str]], *, outside: bool) -> Value:
        value = children[0].name("IN")
        texts = ", ".join(_quoted(each) for each in children[1])
        return _of_text(
            value, None if value.text is None else f"{value.text} IN ({texts})", outside
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
        matches = None if value.text is None else f"rlike({value.text}, {_quoted(pattern)})"
        return _of_text(value, matches, differs)

    def is_null(self, parts: list[Value]) -> Value:
        value = parts[0].name("IS NULL")
        return Value(value.start, truth=f"(NOT {value.known()})")

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
        return Value(
            start,
            exact=None if value.exact is None else _negative(value.exact),
            approximate=None if value.approximate is None else f"(- {value.approximate})",
        )

    # -- literals and names

    def string(self, tokens: list[Token]) -> Value:
        return Value(_start(tokens[0]), text=_quoted(_unquoted(tokens[0])))

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
        return Value(_start(token), approximate=f"CAST('{value!r}' AS DOUBLE)")

    def true(self, tokens: list[Token]) -> Value:
        return Value(_start(tokens[0]), truth="TRUE")

    def false(self, tokens: list[Token]) -> Value:
        return Value(_start(tokens[0]), truth="FALSE")

    def identifier(self, tokens: list[Token]) -> Value:
        return _named(tokens[0])


def _of_text(value: Value, matches: str | None, differs: bool) -> Value:
    """Return the result of an operator on texts: for other values false, or true if negated."""
    found = "FALSE" if matches is None else f"coalesce({matches}, FALSE)"
    shown = f"NOT {found}" if differs else found
    return Value(value.start, truth=f"(CASE WHEN {value.known()} THEN {shown} END)")


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
    return Value(_start(token), exact=f"CAST({value} AS BIGINT)")


def _regular(pattern: Token, escape: Token | None) -> str:
    """Return a pattern of LIKE as a regular expression of Java and of RE2."""
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


TEXT_TYPES: Final = ("string", "char", "symbol", "uuid")
EXACT_TYPES: Final = ("byte", "short", "int", "long", "ubyte", "ushort", "uint", "timestamp")
APPROXIMATE_TYPES: Final = ("float", "double")
"""The types of properties that are a text, or a number, to the broker (`selector/facts.py`), by the
field of V that has it. A ulong is a number, too, and in the field `string`."""

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
        words = "CASE JMSDeliveryMode WHEN 2 THEN 'PERSISTENT' WHEN 1 THEN 'NON_PERSISTENT' END"
        return Value(start, text=f"({words})", is_name=True)
    if name == "JMSTimestamp":
        # a message without a time has the time 0 (WD10 3.3.2)
        return Value(start, exact="coalesce(unix_millis(JMSTimestamp), 0)", is_name=True)
    if name in {"JMSPriority", "JMSXGroupSeq", "JMSXDeliveryCount"}:
        return Value(start, exact=f"CAST({name} AS BIGINT)", is_name=True)
    if name in TEXT_COLUMNS:
        return Value(start, text=name, is_name=True)
    if name.startswith("JMS") and not name.startswith(("JMSX", "JMS_")):
        fail(f"a selector cannot ask for {name!r}", start)
    value = f"(try_element_at(properties, {_quoted(name)}))"
    kind = f"{value}.type"
    return Value(
        start,
        text=f"(CASE WHEN {kind} IN {literal(TEXT_TYPES)} THEN {value}.string END)",
        exact=f"(CASE WHEN {kind} IN {literal(EXACT_TYPES)} THEN {value}.long"
        f" WHEN {kind} = 'ulong' THEN TRY_CAST({value}.string AS BIGINT) END)",
        approximate=f"(CASE WHEN {kind} IN {literal(APPROXIMATE_TYPES)} THEN {value}.double END)",
        truth=f"(CASE WHEN {kind} = 'boolean' THEN {value}.boolean END)",
        exists=f"coalesce({kind} <> 'null', FALSE)",
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


def condition(text: str) -> str:
    """Return the condition that `text` selects a row; raise SelectorError if it is no selector.

    Null, for unknown, does not select.
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
