"""A network of its own for one program: two cables lead to this machine, and each can be pulled."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

CABLES: Final = ("10.213.71", "10.213.72")
"""Networks of the two cables: this machine is .1 in each, the program .2."""

HERE: Final = 1
THERE: Final = 2


class Network:
    """A network namespace; its name and those of the cables are of this process."""

    def __init__(self) -> None:
        self._name: Final = f"jms{os.getpid()}"
        self.within: Final = ["ip", "netns", "exec", self._name]
        """The command within which a program has this network."""

    def make(self) -> None:
        """Make the network and its cables. Raise CalledProcessError if this is not allowed."""
        _ip("netns", "add", self._name)
        for number, net in enumerate(CABLES):
            near, far = self._cable(number), f"far{number}"
            _ip("link", "add", near, "type", "veth", "peer", "name", far, "netns", self._name)
            _ip("addr", "add", f"{net}.{HERE}/24", "dev", near)
            _ip("link", "set", near, "up")
            _ip("-n", self._name, "addr", "add", f"{net}.{THERE}/24", "dev", far)
            _ip("-n", self._name, "link", "set", far, "up")
        _ip("-n", self._name, "link", "set", "lo", "up")

    def _cable(self, number: int) -> str:
        return f"{self._name}n{number}"

    def pull(self, number: int) -> None:
        """Pull a cable: packets are lost, and no connection ends."""
        _ip("link", "set", self._cable(number), "down")

    def remove(self) -> None:
        """Remove what there is of the cables and the network."""
        # the kernel would remove the cables of a network that is gone some time later
        for number in range(len(CABLES)):
            subprocess.run(
                ["ip", "link", "del", self._cable(number)], check=False, capture_output=True
            )
        subprocess.run(["ip", "netns", "del", self._name], check=False, capture_output=True)


@contextmanager
def network() -> Iterator[Network]:
    """Make a network; remove it in the end."""
    made = Network()
    try:
        made.make()
        yield made
    finally:
        made.remove()


def why_no_network() -> str:
    """Return why this process can make no network; empty if it can."""
    if os.geteuid() != 0:
        return "a network namespace needs root"
    if shutil.which("ip") is None:
        return "the program ip is not installed"
    try:
        with network():
            return ""
    except subprocess.CalledProcessError as error:
        return f"no network namespace can be made: {error.stderr.strip()}"


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)
