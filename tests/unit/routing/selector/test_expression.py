"""Selectors evaluated on messages: values, three-valued logic, and the results of SQLite."""

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.routing.errors import InvalidSelector
from broker.routing.selector import parse_selector
from tests.support.selected import selectable

pytestmark = pytest.mark.requirement("RCV-05")

CAR = selectable(
    {"color": "blue", "weight": 2600, "price": 1.5, "sold": False, "none": None, "it's": 1},
    subject="car",
)

ANSWERS = [
    pytest.param("JMSType = 'car' AND color = 'blue' AND weight > 2500", True, id="all of it"),
    pytest.param("color = 'red' OR weight = 2600", True, id="one of two"),
    pytest.param("color = 'red' OR weight = 1", False, id="none of two"),
    pytest.param("color = 'red' OR weight = 2600 AND price = 2", False, id="AND binds tighter"),
    pytest.param("NOT color = 'red' AND sold = FALSE", True, id="NOT binds tighter still"),
    pytest.param("NOT sold", True, id="a property as a condition"),
    pytest.param("color", False, id="a string as a condition"),
    pytest.param("NOT color", False, id="and not that either"),
    pytest.param("NOT weight", False, id="nor NOT of a number"),
    pytest.param("weight + 2 * 3 = 2606", True, id="factors before sums"),
    pytest.param("(weight + 2) * 3 = 7806", True, id="but for parentheses"),
    pytest.param("10 - 4 - 3 = 3 AND 24 / 4 / 2 = 3", True, id="from left to right"),
    pytest.param("7 / 2 = 3 AND -7 / 2 = -3 AND 7 / -2 = -3", True, id="whole quotients"),
    pytest.param("7 / 2.0 = 3.5", True, id="a double makes doubles"),
    pytest.param("weight / 0 = 1 OR NOT weight / 0 = 1", False, id="an exact zero divides nothing"),
    pytest.param("price / 0.0 > 1E300 AND price / -0.0 < -1E300", True, id="infinities"),
    pytest.param("0.0 / 0.0 <> 0.0 / 0.0", True, id="what is no number equals nothing"),
    pytest.param("0.0 / 0.0 < 1 OR 0.0 / 0.0 >= 1", False, id="and has no order"),
    pytest.param("9223372036854775807 + 1 > 0", True, id="exact numbers do not overflow"),
    pytest.param("+weight = - -2600", True, id="signs"),
    pytest.param("-color = 1 OR NOT -color = 1", False, id="the sign of a string"),
    pytest.param("weight = 2600.0 AND price = 15 / 10.0", True, id="exact as approximate"),
    pytest.param("9007199254740993 = 9007199254740992.0", True, id="compared as doubles, as Java"),
    pytest.param("9007199254740993 = 9007199254740992", False, id="compared exactly"),
    pytest.param(
        "weight = 0xA28 AND weight = 05050 AND weight = 2600L", True, id="Java's integers"
    ),
    pytest.param("price = 1.5d AND price = 15E-1 AND price = .15e+1F", True, id="Java's doubles"),
    pytest.param("7. = 7 AND 7f = 7 AND 0 = 0L AND 010d = 10", True, id="more of Java's literals"),
    pytest.param("0.1f = 0.1", False, id="a float is rounded to 32 bits"),
    pytest.param("color = 'BLUE'", False, id="strings keep their case"),
    pytest.param("Color IS NULL AND color IS NOT NULL", True, id="so do identifiers"),
    pytest.param("none IS NULL AND NOT none IS NOT NULL", True, id="null is not there"),
    pytest.param("color = 5 OR color <> 5", False, id="a string is neither 5 nor not"),
    pytest.param("NOT color = 5", True, id="so this is true"),
    pytest.param("sold = 0 OR sold = 'false' OR sold <> 0", False, id="nor are booleans numbers"),
    pytest.param("weight > color OR color > color", False, id="strings have no order"),
    pytest.param("sold = FALSE AND sold <> TRUE", True, id="booleans"),
    pytest.param("(weight = 2600) = TRUE AND (weight = 1) <> TRUE", True, id="truth compared"),
    pytest.param("color IN ('red', 'blue') AND color NOT IN ('red')", True, id="in"),
    pytest.param("weight IN ('2600')", False, id="a number is in no list"),
    pytest.param("NOT (weight IN ('2600')) AND weight NOT IN ('2600')", True, id="but not in it"),
    pytest.param("weight BETWEEN 2600 AND 2600", True, id="the ends count"),
    pytest.param("weight NOT BETWEEN 2600 AND 2600", False, id="both ways"),
    pytest.param("weight BETWEEN 2601 AND 9999 OR weight BETWEEN 0 AND 2599", False, id="outside"),
    pytest.param("weight NOT BETWEEN 2601 AND 9999", True, id="outside is not between"),
    pytest.param("color BETWEEN 1 AND 2 OR color NOT BETWEEN 1 AND 2", False, id="strings neither"),
    pytest.param("color LIKE 'b%e' AND color NOT LIKE 'b_e'", True, id="like"),
    pytest.param("weight LIKE '%'", False, id="a number is like nothing"),
    pytest.param("'it''s' = 'it''s' AND 'a' <> 'a''' ", True, id="quotes in strings"),
    pytest.param("TRUE", True, id="true"),
    pytest.param("FALSE OR NOT TRUE", False, id="false"),
]


@pytest.mark.parametrize(("text", "answer"), ANSWERS)
def test_a_message_is_asked(text: str, answer: bool) -> None:
    assert parse_selector(text).matches(CAR) is answer


UNKNOWN = [
    "x = 1",
    "x <> 1",
    "x = 'a'",
    "x = y",
    "x < 1",
    "x + 1 = 2",
    "-x = 1",
    "1 / 0 = 1",
    "x BETWEEN 1 AND 2",
    "x NOT BETWEEN 1 AND 2",
    "weight BETWEEN x AND 9999",
    "weight NOT BETWEEN 1 AND x",
    "x IN ('a')",
    "x NOT IN ('a')",
    "x LIKE '%'",
    "x NOT LIKE '%'",
    "x",
    "x AND TRUE",
    "x OR FALSE",
    "x AND x",
    "(x = 1) = TRUE",
    "JMSCorrelationID = 'a'",
    "JMSMessageID LIKE '%'",
]


@pytest.mark.parametrize("text", UNKNOWN)
def test_unknown_takes_nothing_and_neither_does_its_contrary(text: str) -> None:
    assert not parse_selector(text).matches(CAR)
    assert not parse_selector(f"NOT ({text})").matches(CAR)


@pytest.mark.parametrize(
    "text",
    [
        "x = 1 OR TRUE",
        "NOT (x = 1 AND FALSE)",
        "NOT (weight BETWEEN x AND 1)",
        "weight NOT BETWEEN x AND 1",
    ],
)
def test_what_does_not_depend_on_the_unknown_is_known(text: str) -> None:
    assert parse_selector(text).matches(CAR)


# -- compared with SQLite as far as the two languages agree

NUMBERS = st.sampled_from(["i", "j", "n", "0", "1", "-2", "7"])
STRINGS = st.sampled_from(["s", "t", "m"])
TEXTS = st.text("ab%_!'", max_size=5)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def sums() -> st.SearchStrategy[str]:
    """Generate arithmetic expressions."""
    return st.recursive(
        NUMBERS,
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda it: f"({' '.join(it)})"),
            st.tuples(st.sampled_from("+-"), inner).map(" ".join),
        ),
        max_leaves=5,
    )


def patterns() -> st.SearchStrategy[str]:
    """Generate patterns in which the escape character escapes a wildcard."""
    return TEXTS.map(lambda text: text.replace("!", "!_"))


@st.composite
def predicates(draw: st.DrawFn) -> str:
    """Draw a predicate that SQL and selectors evaluate alike."""
    no = draw(st.sampled_from(["", "NOT "]))
    name = draw(STRINGS)
    match draw(st.integers(0, 5)):
        case 0:
            operator = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]))
            return f"{draw(sums())} {operator} {draw(sums())}"
        case 1:
            return f"{draw(sums())} {no}BETWEEN {draw(sums())} AND {draw(sums())}"
        case 2:
            strings = ", ".join(quoted(text) for text in draw(st.lists(TEXTS, min_size=1)))
            return f"{name} {no}IN ({strings})"
        case 3:
            return f"{name} {no}LIKE {quoted(draw(patterns()))} ESCAPE '!'"
        case 4:
            return f"{name} IS {no}NULL"
    operator = draw(st.sampled_from(["=", "<>"]))
    return f"{name} {operator} {quoted(draw(TEXTS))}"


def conditions() -> st.SearchStrategy[str]:
    """Generate conditions of predicates with AND, OR, NOT and parentheses."""
    return st.recursive(
        predicates(),
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from([" AND ", " OR "]), inner).map("".join),
            inner.map(lambda it: f"({it})"),
            inner.map(lambda it: f"NOT {it}"),
        ),
        max_leaves=6,
    )


SQLITE = sqlite3.connect(":memory:", check_same_thread=False)
SQLITE.execute("PRAGMA case_sensitive_like = TRUE")


@given(
    conditions(),
    st.fixed_dictionaries(
        {
            "i": st.integers(-9, 9),
            "j": st.integers(-9, 9),
            "s": TEXTS,
            "t": TEXTS,
        }
    ),
)
def test_sqlite_takes_the_same_messages(text: str, row: dict[str, object]) -> None:
    values = {**row, "n": None, "m": None}
    columns = ", ".join(f":{name} AS {name}" for name in values)
    statement = f"SELECT {{}} FROM (SELECT {columns})"
    try:
        selector = parse_selector(text)
        contrary = parse_selector(f"NOT ({text})")
    except InvalidSelector:
        return  # too many words, or too deep
    message = selectable(values)
    (expected,) = SQLITE.execute(statement.format(text), values).fetchone()
    assert selector.matches(message) is (expected == 1)
    assert contrary.matches(message) is (expected == 0)


TRUTHS = st.sampled_from(["1 = 1", "1 = 2", "x = 1", "flag", "NOT x", "y IS NULL"])


def answer(text: str) -> bool | None:
    """Return the value of `text` for a message, None if neither it nor NOT `text` matches."""
    message = selectable({"flag": True, "z": 1})
    if parse_selector(text).matches(message):
        return True
    return False if parse_selector(f"NOT ({text})").matches(message) else None


@given(TRUTHS, TRUTHS, TRUTHS)
def test_three_valued_logic_keeps_its_laws(p: str, q: str, r: str) -> None:
    laws = {
        f"NOT (({p}) AND ({q}))": f"NOT ({p}) OR NOT ({q})",
        f"NOT (({p}) OR ({q}))": f"NOT ({p}) AND NOT ({q})",
        f"NOT NOT ({p})": p,
        f"({p}) AND (({q}) OR ({r}))": f"({p}) AND ({q}) OR ({p}) AND ({r})",
        f"({p}) OR ({q}) AND ({r})": f"(({p}) OR ({q})) AND (({p}) OR ({r}))",
        f"({p}) AND ({q})": f"({q}) AND ({p})",
        f"({p}) OR ({p})": p,
    }
    for left, right in laws.items():
        assert answer(left) is answer(right), (left, right)
