"""Write the page of all commands, `docs/reference/command-line.md`, from the commands."""

from __future__ import annotations

from textwrap import wrap
from typing import Final

import typer
import typer.cli
import typer.main

from broker.cli.application import application
from config.settings_texts import ROOT

PAGE: Final = ROOT / "docs" / "reference" / "command-line.md"

WIDTH: Final = 120

HEADER: Final = """# Command line

`jms-broker` runs a broker, sends and receives messages, and manages a running broker. `--help`
behind any command prints what this page says; `jms-broker --install-completion` installs
completion for the shell.

Commands that talk to a broker take `--url amqp://USER:PASSWORD@HOST:PORT`, or the variable
`JMS_BROKER_URL`. Without them they talk to the broker of the context in use (`jms-broker context`),
and without a context to the broker on this machine. A context counts for every command that reads
`JMS_BROKER_URL`, unless `--config` is given, so also for `user`, `acl` and `doctor`; `healthcheck`
reads neither. With `amqps://` they use TLS,
at port 5671 by default, with the files of `--ca`, `--cert` and `--key`. Commands that manage a
broker, so all but `send`, `receive`, `browse`, `load` and `healthcheck`, also take the URL of its
HTTP API, `https://HOST:8161`, with a user or with `--token`: they need no client library then.
If the settings that `JMS_BROKER_CONFIG` names have [shards](../operations/shards.md),
`--shard NAME` takes the place of `--url`.
With `--json` a command prints one object a line. Without it, a list is a table on a terminal, and
lines with tabs and a header in a pipe.
A table shows `�` for a character that a terminal may obey, and JSON escapes it (`\\u009b`).
`receive` and `browse` write bodies byte for byte into a pipe or a file; on a terminal they replace
these characters, except line feeds and tabs.

The exit status is 0 if the command did what it says, 1 if it failed, 2 for a wrong usage, 3 if
there is no such thing, 4 if the user may not do it, or may not log in, and 5 if the broker is not
reached or does not answer. `healthcheck` and `serve` have statuses of their own.

The command `make references` writes this page from the commands.
"""


def page() -> str:
    """Return the page: the help of all commands, as typer writes it, below the text above."""
    command = typer.main.get_command(application)
    text = typer.cli.get_docs_for_click(
        obj=command, ctx=typer.Context(command), name="jms-broker", title=""
    )
    _, _, rest = text.partition("**Usage**:")
    lines = [line.rstrip() for line in f"\n## `jms-broker`\n\n**Usage**:{rest}".splitlines()]
    # a usage is not an example that a test runs
    shown = ["```text" if line == "```console" else line.removeprefix("$ ") for line in lines]
    return "\n".join([HEADER.rstrip("\n"), *_wrapped(shown)]).rstrip("\n") + "\n"


def _wrapped(lines: list[str]) -> list[str]:
    """Return the lines of a page with none longer than WIDTH; usages are short."""
    found: list[str] = []
    for line in lines:
        indent = "  " if line.startswith("* ") else ""
        found += wrap(line, WIDTH, subsequent_indent=indent, break_on_hyphens=False) or [""]
    return found


def write() -> None:
    """Write the page."""
    PAGE.write_text(page())
