"""The size limits and conventions of this project as rules over syntax trees.

Each rule takes one file and yields its violations, as `line: words`. A rule does not know to which
files it applies: tests/test_tidy.py decides that.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]

FILE_LINES_MAX: Final = 500
FUNCTION_LINES_MAX: Final = 50
POSITIONAL_MAX: Final = 3
NESTING_MAX: Final = 3

FORBIDDEN_MODULES: Final = {"utils", "util", "helpers", "common", "manager", "base", "misc"}
FORBIDDEN_CLASSES: Final = re.compile(r"^Abstract|(Impl|Handler|Manager|Helper)$")

BLOCKS: Final = (
    ast.If,
    ast.For,
    ast.While,
    ast.With,
    ast.Try,
    ast.Match,
    ast.AsyncFor,
    ast.AsyncWith,
)
FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
MUTABLE_DISPLAYS: Final = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
MUTABLE_CALLS: Final = {"list", "dict", "set", "bytearray", "deque", "defaultdict", "Counter"}
ABSTRACT: Final = {"ABC", "ABCMeta"}
REFLECTION: Final = {"getattr", "setattr", "hasattr", "delattr"}
MOCKS: Final = {"Mock", "MagicMock", "AsyncMock", "patch"}

OPENERS: Final = re.compile(
    r"(That|Those|What|Whatever|Who|Whoever|Whose|So|The same|Where|Which)\b"
)
"""Words that no docstring or comment begins with: its first line names its subject."""

MARKDOWN_WIDTH: Final = 120

REQUIREMENT: Final = re.compile(r"\b[A-Z]{3}-\d\d\b")
FAULT: Final = re.compile(r"\bF\d+\b")
PROMISE_OR_ATTACK: Final = re.compile(r"(?<![-\w])[PAZSRCG]\d{1,2}\b")
"""A promise of `docs/reliability.md`, or a class of attacks of `docs/design/hostile-input.md`."""

TEST_FILE: Final = re.compile(r"(?<=`)(?:[\w-]+/)*test_\w+\.py(?=`)")
PAGE: Final = re.compile(r"(?<![\w./*-])[\w.][\w./-]*\.md\b")
"""A path of a document; neither an address on the web nor a pattern of names."""

PLACE: Final = re.compile(
    r"`(?P<page>docs/[\w./-]+\.md)`,?[\s#]+(?:rules? |sections? )?"
    r"(?P<ids>[A-Z]?\d[\d.]*(?:(?:, | and | to )[A-Z]?\d[\d.]*)*)"
)
"""A page and the ids of places on it that are cited: one, such as R7, or several: 4.2, 13.1."""

PLACE_ID: Final = re.compile(r"\b[A-Z]?\d+(?:\.\d+)*\b")

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Source:
    """A parsed Python file."""

    def __init__(self, path: str, text: str) -> None:
        self.path: Final = path
        self.text: Final = text
        self.tree: Final = ast.parse(text)

    @classmethod
    def read(cls, file: Path) -> Source:
        return cls(file.relative_to(ROOT).as_posix(), file.read_text())

    @property
    def name(self) -> str:
        """The module name, like `broker.amqp.decode` for broker/amqp/decode.py."""
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    def functions(self) -> Iterator[Function]:
        for node in ast.walk(self.tree):
            if isinstance(node, FUNCTIONS):
                yield node


Rule = Callable[[Source], Iterator[str]]


def file_is_short(source: Source) -> Iterator[str]:
    """Reject files of more than FILE_LINES_MAX lines."""
    lines = source.text.count("\n")
    if lines > FILE_LINES_MAX:
        yield f"1: {lines} lines, {FILE_LINES_MAX} at most"


def functions_are_short(source: Source) -> Iterator[str]:
    """Reject functions of more than FUNCTION_LINES_MAX lines."""
    for function in source.functions():
        lines = (function.end_lineno or function.lineno) - function.lineno + 1
        if lines > FUNCTION_LINES_MAX:
            yield f"{function.lineno}: {function.name} has {lines} lines, not {FUNCTION_LINES_MAX}"


def parameters_are_few_or_named(source: Source) -> Iterator[str]:
    """Require keyword-only parameters beyond three.

    Readers on the data path take `data, at, end` in addition.
    """
    for function in source.functions():
        names = [each.arg for each in [*function.args.posonlyargs, *function.args.args]]
        given = [name for name in names if name not in {"self", "cls"}]
        dunder = function.name.startswith("__") and function.name != "__init__"
        reader = given[:1] == ["data"] or {"data", "at"} <= set(given)
        if len(given) > POSITIONAL_MAX and not dunder and not reader:
            yield f"{function.lineno}: {function.name} takes {len(given)} positional parameters"


def nesting_is_shallow(source: Source) -> Iterator[str]:
    """Reject functions that nest more than NESTING_MAX blocks."""
    for function in source.functions():
        for line, depth in _deepest(function.body, 0):
            if depth > NESTING_MAX:
                yield f"{line}: {function.name} nests {depth} blocks, {NESTING_MAX} at most"
                break


def _deepest(body: list[ast.stmt], depth: int) -> Iterator[tuple[int, int]]:
    """Yield each block's line and nesting depth; an `elif` is as deep as its `if`."""
    for statement in body:
        if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            continue  # judged by itself
        inside = depth + isinstance(statement, BLOCKS)
        if isinstance(statement, BLOCKS):
            yield statement.lineno, inside
        for part in _bodies(statement):
            only = part[0] if len(part) == 1 else None
            is_elif = isinstance(statement, ast.If) and part is statement.orelse
            chained = is_elif and isinstance(only, ast.If)
            yield from _deepest(part, depth if chained else inside)


def _bodies(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    if isinstance(statement, ast.Match):
        yield from (case.body for case in statement.cases)
        return
    for name in ("body", "orelse", "finalbody"):
        yield getattr(statement, name, [])
    if isinstance(statement, ast.Try):
        yield from (handler.body for handler in statement.handlers)


def nothing_is_any(source: Source) -> Iterator[str]:
    """Reject the type Any."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Name) and node.id == "Any":
            yield f"{node.lineno}: Any"
        if isinstance(node, ast.Attribute) and node.attr == "Any":
            yield f"{node.lineno}: Any"


def nothing_derives_from_abc(source: Source) -> Iterator[str]:
    """Reject abc.ABC: its compiled subclasses share one isinstance cache, which mixes them up."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Name | ast.Attribute | ast.alias) and named(node) in ABSTRACT:
            yield f"{node.lineno}: {named(node)}"


def named(node: ast.Name | ast.Attribute | ast.alias) -> str:
    """Return the last name in a node."""
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else node.name


def nothing_reflects(source: Source) -> Iterator[str]:
    """Reject getattr and other functions of reflection."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Name) and node.id in REFLECTION:
            yield f"{node.lineno}: {node.id}"


def globals_do_not_change(source: Source) -> Iterator[str]:
    """Require module-level containers to be Final, and forbid rebinding them."""
    for node in source.tree.body:
        if isinstance(node, ast.Assign) and _mutable(node.value):
            names = ", ".join(ast.unparse(target) for target in node.targets)
            if names != "__all__":
                yield f"{node.lineno}: {names} can change: make it Final, or somebody's attribute"
        if isinstance(node, ast.AnnAssign) and _mutable(node.value) and not _final(node):
            yield f"{node.lineno}: {ast.unparse(node.target)} can change"
    for inner in ast.walk(source.tree):
        if isinstance(inner, ast.Global):
            yield f"{inner.lineno}: global {', '.join(inner.names)}"


def _final(node: ast.AnnAssign) -> bool:
    return "Final" in ast.unparse(node.annotation)


def _mutable(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id in MUTABLE_CALLS
    return isinstance(value, MUTABLE_DISPLAYS)


def enums_have_one_name(enums: set[str]) -> Rule:
    """Reject aliases of an Enum, which cost sixty times as much in compiled code."""

    def rule(source: Source) -> Iterator[str]:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Assign | ast.AnnAssign):
                value = node.value
                if isinstance(value, ast.Name) and value.id in enums:
                    yield f"{node.lineno}: an alias of {value.id}"
            if isinstance(node, ast.ImportFrom):
                for name in node.names:
                    if name.name in enums and name.asname is not None:
                        yield f"{node.lineno}: {name.asname} is an alias of {name.name}"

    return rule


def enums_in(source: Source) -> set[str]:
    """Return the Enum classes that the file defines."""
    kinds = {"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"}
    return {
        node.name
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ClassDef)
        and any(isinstance(base, ast.Name) and base.id in kinds for base in node.bases)
    }


def what_is_left_to_do_has_an_issue(source: Source) -> Iterator[str]:
    """Reject marks of unfinished work without an issue number."""
    for number, line in enumerate(source.text.splitlines(), start=1):
        if re.search(r"\b(FIXME|XXX)\b|\bTODO\b(?!\(#\d+\))", line):
            yield f"{number}: write TODO(#issue): what"


def names_say_something(source: Source) -> Iterator[str]:
    """Reject modules and classes whose names do not say what they are."""
    if source.name.rpartition(".")[2] in FORBIDDEN_MODULES:
        yield "1: a module's name is a noun for one concept"
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ClassDef) and FORBIDDEN_CLASSES.search(node.name):
            yield f"{node.lineno}: class {node.name} could be called by what it is"


def module_says_what_it_is_for(source: Source) -> Iterator[str]:
    """Require a docstring of every module that is not empty."""
    if source.tree.body and not ast.get_docstring(source.tree):
        yield "1: no docstring"


def nothing_is_mocked(source: Source) -> Iterator[str]:
    """Reject mocks."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ImportFrom) and node.module == "unittest.mock":
            yield f"{node.lineno}: a fake that behaves is better than a mock"
        if isinstance(node, ast.Name) and node.id in MOCKS:
            yield f"{node.lineno}: {node.id}"


def nothing_sleeps(source: Source) -> Iterator[str]:
    """Reject sleeping: it makes a suite slow and unreliable. `sleep(0)` only yields."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and _sleeps(node):
            yield f"{node.lineno}: {ast.unparse(node)}"


def _sleeps(call: ast.Call) -> bool:
    name = ast.unparse(call.func).rpartition(".")[2]
    return name == "sleep" and not ast.unparse(call).endswith("(0)")


def imported_modules(source: Source) -> set[str]:
    """Return all modules that the file may import; names taken from them count as submodules."""
    found: set[str] = set()
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            found.update(name.name for name in node.names)
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            found.add(node.module)
            found.update(f"{node.module}.{name.name}" for name in node.names)
    return found


def classes_in(source: Source) -> set[str]:
    """Return the names of the classes that a module defines at its top."""
    return {node.name for node in source.tree.body if isinstance(node, ast.ClassDef)}


def classes_defined_twice(sources: Iterable[Source]) -> Iterator[str]:
    """Yield each class name that several modules of one top-level package define, with them."""
    places: dict[tuple[str, str], list[str]] = {}
    for source in sources:
        for name in classes_in(source):
            package = source.path.partition("/")[0]
            places.setdefault((package, name), []).append(source.path)
    for (_, name), paths in places.items():
        if len(paths) > 1:
            yield f"{name}: {', '.join(sorted(paths))}"


def docstrings_say_what_they_are_of(source: Source) -> Iterator[str]:
    """Yield the docstrings that begin with a pronoun or a relative clause."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            text = node.value.value
            if isinstance(text, str) and OPENERS.match(text.lstrip()):
                yield f"{node.lineno}: a docstring begins with {text.split()[0]!r}"


def comments_say_what_they_are_of(source: Source) -> Iterator[str]:
    """Yield the comments on lines of their own that begin with a pronoun or a relative clause.

    A comment of several lines begins with its first line. Comments have no capital letter, if they
    are of one sentence.
    """
    before = -1
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type != tokenize.COMMENT or token.line[: token.start[1]].strip():
            continue
        number, words = token.start[0], token.string.lstrip("#: ")
        if number != before + 1 and OPENERS.match(words[:1].upper() + words[1:]):
            yield f"{number}: a comment begins with {words.split()[0]!r}"
        before = number


def wide_lines(text: str) -> Iterator[str]:
    """Yield the lines of a Markdown document that are too long: outside tables and code."""
    in_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code and not line.startswith("|") and len(line) > MARKDOWN_WIDTH:
            yield f"{number}: {len(line)} characters, {MARKDOWN_WIDTH} at most"


def prose_of(source: Source) -> str:
    """Return a file's docstrings and comments, each on its line; the other lines are empty."""
    lines = source.text.splitlines()
    kept = [""] * len(lines)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            end = node.end_lineno or node.lineno
            kept[node.lineno - 1 : end] = lines[node.lineno - 1 : end]
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type == tokenize.COMMENT:
            kept[token.start[0] - 1] = token.string
    return "\n".join(kept)


def prose_in(markdown: str) -> str:
    """Return a document with its blocks of code left empty."""
    in_code = False
    kept: list[str] = []
    for line in markdown.splitlines():
        is_fence = line.lstrip().startswith("```")
        kept.append("" if in_code or is_fence else line)
        in_code ^= is_fence
    return "\n".join(kept)


def ids_on(page: str) -> set[str]:
    """Return the ids of a page: in its headings, and in the first cells of its tables."""
    places = re.findall(r"^(?:#+ (.*)|\| ([^|]*)\|)", page, re.MULTILINE)
    return {
        name
        for heading, cell in places
        for pattern in (PLACE_ID, REQUIREMENT)
        for name in pattern.findall(heading or cell)
    }


def cited(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """Yield what `pattern` finds in `text`, each with its line."""
    for found in pattern.finditer(text):
        yield text.count("\n", 0, found.start()) + 1, found[0]


def unknown_requirements(text: str, known: set[str]) -> Iterator[str]:
    """Yield the cited requirements that are not `known`, of groups that are."""
    groups = {name[:4] for name in known if REQUIREMENT.fullmatch(name)}
    for line, name in cited(text, REQUIREMENT):
        if name[:4] in groups and name not in known:
            yield f"{line}: there is no requirement {name}"


def unknown_faults(text: str, known: set[str]) -> Iterator[str]:
    """Yield the cited faults that are not `known`."""
    for line, name in cited(text, FAULT):
        if name not in known:
            yield f"{line}: there is no fault {name}"


def unknown_promises_or_attacks(text: str, known: set[str]) -> Iterator[str]:
    """Yield the cited promises and classes of attacks that are not `known`."""
    for line, name in cited(text, PROMISE_OR_ATTACK):
        if name not in known:
            yield f"{line}: there is no promise or class of attacks {name}"


def missing_tests(text: str, known: Iterable[str]) -> Iterator[str]:
    """Yield the cited files of tests that no path of `known` ends with."""
    ends = [f"/{path}" for path in known]
    for line, name in cited(text, TEST_FILE):
        if not any(path.endswith(f"/{name}") for path in ends):
            yield f"{line}: there is no {name}"


def missing_pages(text: str, folder: Path) -> Iterator[str]:
    """Yield the cited documents that are neither below the root nor beside a file in `folder`."""
    for line, name in cited(text, PAGE):
        if not any((base / name).is_file() for base in (ROOT, folder)):
            yield f"{line}: there is no {name}"


def missing_places(text: str) -> Iterator[str]:
    """Yield the cited ids that are not on the page that is cited for them."""
    for found in PLACE.finditer(text):
        page = ROOT / found["page"]
        known = ids_on(page.read_text()) if page.is_file() else set[str]()
        line = text.count("\n", 0, found.start()) + 1
        for name in PLACE_ID.findall(found["ids"]):
            if name not in known:
                yield f"{line}: there is no {name} in {found['page']}"
