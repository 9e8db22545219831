"""A page of the documents as its examples: programs, files, and commands with their output.

A fenced block is one of these:

- ``` console: lines that begin with `$ ` are commands, which the test runs one after another. The
  lines below a command are its output. `…` stands for any text in a line, and a line `…` for any
  lines. If a command has no lines below it, its output does not matter. A command ends with status
  0, or with the one in a comment behind it: `# status 3`. `^C` stops the broker that the page runs.
- A block with a title, ``` python title="orders.py": a file, which later commands use.
- ``` text, ``` mermaid, or no language: nothing to run.
- `<!-- run first: jms-broker serve -->` runs a command before the blocks, which readers do not see.
- Any other block is made from a file that the tests run (`--8<-- "tests/interop/…"`), or the line
  before it says why it does not run: `<!-- not run: REASON -->`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

BLOCK: Final = re.compile(
    r"^(?:<!-- not run: (?P<reason>[^\n]+?) -->\n+)?"
    r"(?P<indent> *)```(?P<language>\w*)(?P<attributes>[^\n]*)\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
FIRST: Final = re.compile(r"^<!-- run first: (.+?) -->$", re.MULTILINE)
TITLE: Final = re.compile(r'title="([^"]+)"')
STATUS: Final = re.compile(r"#.*\bstatus (\d+)")
INCLUDED: Final = re.compile(r'^\s*--8<-- "(?P<file>[^":]+)(?::(?P<section>\w+))?"$')
TO_READ: Final = frozenset({"", "text", "mermaid"})
PROMPT: Final = "$ "
INTERRUPT: Final = "^C"


@dataclass(frozen=True, kw_only=True)
class Block:
    """One fenced block; `line` is where it begins, `reason` why it does not run, if it says so."""

    line: int
    language: str
    title: str
    text: str
    reason: str

    @property
    def is_read_only(self) -> bool:
        return self.language in TO_READ or bool(self.reason)


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command line with the lines that it prints, and its exit status."""

    line: int
    text: str
    output: list[str]
    status: int


def blocks(text: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    for found in BLOCK.finditer(text):
        title = TITLE.search(found["attributes"])
        indent = found["indent"]
        yield Block(
            line=text.count("\n", 0, found.start("language")) + 1,
            language=found["language"],
            title=title[1] if title else "",
            text="".join(
                line.removeprefix(indent) for line in found["text"].splitlines(keepends=True)
            ),
            reason=found["reason"] or "",
        )


def first_commands(text: str) -> list[Command]:
    """Return the commands that run before the blocks of a page."""
    return [
        Command(line=text.count("\n", 0, found.start()) + 1, text=found[1], output=[], status=0)
        for found in FIRST.finditer(text)
    ]


def commands(block: Block) -> list[Command]:
    """Return the commands of a console block."""
    found: list[Command] = []
    lines = iter(enumerate(block.text.splitlines(), block.line + 1))
    for number, line in lines:
        if line.startswith(PROMPT) or line == INTERRUPT:
            command = line.removeprefix(PROMPT)
            while command.endswith("\\"):
                command = f"{command[:-1]}{next(lines)[1].strip()}"
            status = STATUS.search(command)
            found.append(
                Command(
                    line=number,
                    text=command,
                    output=[],
                    status=int(status[1]) if status else 0,
                )
            )
        elif found:
            found[-1].output.append(line)
    return found


def matches(expected: list[str], printed: list[str]) -> bool:
    """Return whether a command printed the expected lines, in which `…` stands for any text."""
    pattern = "".join(
        r"(?:[^\n]*\n)*" if line.strip() == "…" else f"{any_text(line)}\n" for line in expected
    )
    return re.fullmatch(pattern, "".join(f"{line.rstrip()}\n" for line in printed)) is not None


def any_text(line: str) -> str:
    """Return a pattern of a line in which `…` is any text, and runs of spaces are alike."""
    parts = (r"\s+".join(map(re.escape, re.split(r" +", part))) for part in line.split("…"))
    return ".*".join(parts)


def faults(text: str) -> Iterator[str]:
    """Yield the blocks that neither run nor say why."""
    all_blocks = list(blocks(text))
    typed = " ".join(each.text for each in all_blocks if each.language == "console")
    for block in all_blocks:
        lines = block.text.splitlines()
        if block.is_read_only or (lines and all(INCLUDED.match(line) for line in lines)):
            continue
        if block.title:
            others = (each.text for each in all_blocks if each is not block)
            stem = block.title.rpartition("/")[2].rpartition(".")[0]
            if not re.search(rf"\b{re.escape(stem)}\b", typed + " ".join(others)):
                yield f"{block.line}: nothing uses {block.title}"
        elif block.language != "console":
            yield f"{block.line}: a block of {block.language} that does not run, and says no reason"
        elif not commands(block):
            yield f"{block.line}: a console without a command"
