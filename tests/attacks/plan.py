"""An attack's description, the arguments of its program, and its report."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final, Self

MEBIBYTE: Final = 1024 * 1024

USER: Final = "healthy"
PASSWORD: Final = "open sesame"
"""The healthy client's login, if an attack needs a broker with users."""


@dataclass(frozen=True, kw_only=True)
class Site:
    """The broker to attack, and for how many seconds."""

    port: int
    seconds: float
    http_port: int = 0
    tls_port: int = 0
    memory_max: int = 0
    disk: str = ""
    """The folder of the store, if the attack may fill its disk."""
    share: float = 1.0
    """The fraction of logins or handshakes to make, in attacks that count them."""

    def deadline(self) -> Deadline:
        """Return the end of this attack, counted from now."""
        return Deadline(self.seconds)

    def share_of(self, count: int) -> int:
        """Return the number of logins or handshakes to make of a full attack's `count`."""
        return max(1, round(count * self.share))

    def encoded(self) -> str:
        """Return the site as an argument of a program."""
        return json.dumps(asdict(self))

    @classmethod
    def decoded(cls, text: str) -> Self:
        return cls(**json.loads(text))


class Deadline:
    """A moment some seconds from now."""

    def __init__(self, seconds: float) -> None:
        self._at_s: Final = time.monotonic() + seconds

    def is_over(self) -> bool:
        return self.left_s() <= 0

    def left_s(self) -> float:
        return self._at_s - time.monotonic()


@dataclass
class Reached:
    """The result of an attack: its figures by name, and the broker's answers.

    `told` counts error conditions (SASL codes for logins); `words` has the first description of
    each. A problem is a promise to the attacker that was broken.
    """

    figures: dict[str, float] = field(default_factory=dict)
    told: Counter[str] = field(default_factory=Counter)
    words: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def hear(self, condition: str, description: str = "", *, times: int = 1) -> None:
        """Record an answer of the broker."""
        self.told[condition] += times
        self.words.setdefault(condition, description)

    def check(self, holds: object, problem: str) -> None:
        """Record a problem unless `holds` is true."""
        if not holds:
            self.problems.append(problem)

    def encoded(self) -> str:
        """Return the result as the output of a program."""
        return json.dumps(vars(self))

    @classmethod
    def decoded(cls, text: str) -> Self:
        facts = json.loads(text)
        return cls(**facts | {"told": Counter(facts["told"])})

    def text(self) -> str:
        """Return figures and conditions for the table."""
        figures = [f"{value:,.0f} {name}" for name, value in self.figures.items()]
        return "; ".join(figures + [f"{count:,} times {name}" for name, count in self.told.items()])


SQLITE: Final = "sqlite"
MEMORY: Final = "memory"

Work = Callable[[Site], Coroutine[None, None, Reached]]


@dataclass(frozen=True, kw_only=True)
class Attack:
    """An attack: its actions, its brokers, and the documented promises about it."""

    words: str
    work: Work
    stores: tuple[str, ...] = (SQLITE,)
    settings: str = ""
    """Lines of the broker's settings file, in addition to store and memory_max."""
    condition: str = ""
    """The condition that the attackers must receive; "" if the broker only makes them wait."""
    naming: str = ""
    """The setting that the description of that condition must name."""
    probes: tuple[str, ...] = ("request",)
    """The requests of the healthy clients, by kind; the first is the one in the table."""
    waits_on: tuple[str, ...] = ()
    """Stores on which all producers wait meanwhile, as documented, even the healthy one."""
    lasts_s: float = 0.0
    """Seconds that an attack may take in addition, if it lasts as long as its counts need."""
    grown_mib: float = 0.0
    """Most MiB by which resident memory may have grown after the quiet time; 0 for no bound."""
    peak_mib: float = 0.0
    """Most MiB by which resident memory may grow meanwhile; 0 for no bound but memory_max."""
    prepare: Callable[[Path], None] | None = None
    """Writes the files that `settings` name into the broker's folder; None if there are none."""
    disk_mib: int = 0
    """Size in MiB of a separate disk for the store; 0 for no such disk, and none is filled."""

    def has_users(self) -> bool:
        """Return whether the broker has users, so that healthy clients need a password."""
        return "user = " in self.settings or "users_file = " in self.settings
