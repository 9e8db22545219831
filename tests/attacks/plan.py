"""What an attack is, what it is told, and what it reports."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import asdict, dataclass, field
from typing import Final, Self

MEBIBYTE: Final = 1024 * 1024

USER: Final = "healthy"
PASSWORD: Final = "open sesame"
"""Who the healthy client is, where an attack needs a broker with users."""


@dataclass(frozen=True, kw_only=True)
class Site:
    """The broker that an attack is told of, and for how long it may attack."""

    port: int
    seconds: float
    http_port: int = 0
    memory_max: int = 0
    disk: str = ""
    """The folder of the store, where the disk is the attack's to fill."""

    def deadline(self) -> Deadline:
        """Return the end of this attack, counted from now."""
        return Deadline(self.seconds)

    def encoded(self) -> str:
        """Return it as an argument of a program."""
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
    """What an attack brought about: its figures by name, and what the broker told it.

    `told` counts error conditions (SASL codes where it was a login), `words` has the first
    description that came with each. A problem is a promise to the attacker that was broken.
    """

    figures: dict[str, float] = field(default_factory=dict)
    told: Counter[str] = field(default_factory=Counter)
    words: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def hear(self, condition: str, description: str = "", *, times: int = 1) -> None:
        """Note what the broker said."""
        self.told[condition] += times
        self.words.setdefault(condition, description)

    def check(self, holds: object, problem: str) -> None:
        """Note a problem unless it holds."""
        if not holds:
            self.problems.append(problem)

    def encoded(self) -> str:
        """Return it as the output of a program."""
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
    """An attack: what it does, on which broker, and what the documents promise about it."""

    words: str
    work: Work
    stores: tuple[str, ...] = (SQLITE,)
    settings: str = ""
    """Lines of the broker's settings file, beside store and memory_max."""
    condition: str = ""
    """What the attackers must be told; empty where they are told nothing but to wait."""
    naming: str = ""
    """The setting that the description of that condition must name."""
    probes: tuple[str, ...] = ("request",)
    """What the healthy clients do; the first is the one in the table."""
    waits_on: tuple[str, ...] = ()
    """Stores on which all producers wait meanwhile, as the documents say, the healthy one too."""
    disk_mib: int = 0
    """The size of a disk of its own for the store; 0 is none, and none is filled."""
