"""A reader who types the commands of a page, in a folder of the page's own."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.docs.page import INTERRUPT, Block, Command, commands, matches
from tests.interop.broker_process import READY, BrokerProcess, environment
from tests.interop.preloaded import Loaded, preloaded_command
from tests.support.ports import free_port

SERVE: Final = re.compile(r"^(?:\w+=\S* )*jms-broker serve\b")
PORTS: Final = ("5671", "5672", "5673", "5674", "8161")
"""The ports of the documents; each page gets free ones in their place."""

BROKER: Final = "preloaded-broker"
"""The command for brokers, whose modules are others than those of further commands."""

SECONDS: Final = 60
"""Maximum time of a command."""


class Visit:
    """Runs the blocks of one page in order; each failure names the line of the page."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder: Final = folder
        self._name: Final = name
        self._ports: Final = {port: str(free_port()) for port in PORTS}
        self._broker: BrokerProcess | None = None
        # apart from the files of the page, one of which may be called broker.toml
        self._log: Final = folder / ".broker" / "broker.log"
        self._log.parent.mkdir()
        programs = folder / ".bin"
        programs.mkdir()
        for program, words in (
            ("jms-broker", preloaded_command()),
            (BROKER, preloaded_command(Loaded.BROKER)),
            ("python", [sys.executable]),
            ("pytest", [sys.executable, "-m", "pytest"]),
        ):
            script = programs / program
            script.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
            script.chmod(0o755)
        self._variables: Final = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "JMS_BROKER_PORT": self._ports["5672"],
            "JMS_BROKER_URL": f"amqp://127.0.0.1:{self._ports['5672']}",
            "COLUMNS": "200",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def follow(self, block: Block) -> None:
        """Write the file that a block contains, or run its commands."""
        if block.is_read_only:
            return
        if block.title:
            file = self._folder / block.title
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(self.here(block.text))
        elif block.language == "console":
            for command in commands(block):
                self.run(command)

    def end(self) -> None:
        """Stop the broker of the page, if it runs."""
        if self._broker is not None:
            self._broker.stop()
            self._broker = None

    def run(self, command: Command) -> None:
        """Run a command of the page, and compare its output and status."""
        if command.text == INTERRUPT:
            self.end()
        elif SERVE.match(command.text):
            self._serve(command)
        else:
            done = subprocess.run(
                ["bash", "-c", self.here(command.text)],
                cwd=self._folder,
                env=environment(**self._variables),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=SECONDS,
                check=False,
            )
            printed = self._there(done.stdout)
            assert done.returncode == command.status, self._told(command, printed)
            self._compare(command, printed)

    def here(self, text: str) -> str:
        """Return a text of the page with the ports of this visit."""
        for printed, port in self._ports.items():
            text = re.sub(rf"\b{printed}\b", port, text)
        return text

    def _serve(self, command: Command) -> None:
        """Start the broker in the background; it stops at `^C`, or when the page starts another."""
        self.end()
        words = re.sub(r"jms-broker serve", f"exec {BROKER} serve", self.here(command.text))
        program = ["bash", "-c", f"cd {shlex.quote(str(self._folder))} && {words}"]
        try:
            self._broker = BrokerProcess(
                self._log.parent, variables=self._variables, program=program
            )
        except RuntimeError as error:
            raise AssertionError(self._told(command, str(error))) from error
        ready = [line for line in self._log.read_text().splitlines() if READY.match(line)]
        self._compare(command, self._there("\n".join(ready)))

    def _compare(self, command: Command, printed: str) -> None:
        expected = [line for line in command.output if line]
        if expected:
            lines = [line for line in printed.splitlines() if line.strip()]
            assert matches(expected, lines), self._told(command, printed)

    def _told(self, command: Command, printed: str) -> str:
        log = self._log.read_text()[-2000:] if self._log.exists() else ""
        return f"{self._name}:{command.line}: {command.text}\nprinted:\n{printed}\nlog:\n{log}"

    def _there(self, text: str) -> str:
        """Return an output with the ports that the page prints."""
        for printed, port in self._ports.items():
            text = re.sub(rf"\b{port}\b", printed, text)
        return text
