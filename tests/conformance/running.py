"""A run of cases one after another, which goes on if the broker dies and can be restarted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from .harness import Case, Result, Rule, judge
from .progress import Silent, Watcher
from .restart import BACK_S, RestartError, answers, answers_within, restart
from .verdict import Options, Verdict

ALIVE: Final = "a broker that goes on"
DEAD: Final = "it answers no client any more"


@dataclass(frozen=True)
class Judged:
    """The results of a run, one for each case.

    `killer` is the name of the case in which the broker died without coming back, empty if it
    is alive.
    """

    results: list[Result]
    killer: str = ""


async def judge_all(cases: list[Case], options: Options, watcher: Watcher | None = None) -> Judged:
    """Run cases one after another; return a result for each, and whether the broker is alive.

    If the broker dies and does not come back, the remaining cases are "not run". A broker that does
    not even answer a protocol header before the first case is judged by all cases: its silence is
    no death.
    """
    run = _Running(options, watcher or Silent(), can_die=await answers(options))
    for at, each in enumerate(cases):
        if not await run.judge(each):
            killer = run.revival.killer
            return Judged([*run.results, *not_run(cases[at + 1 :], killer)], killer)
    return Judged(run.results, "" if await run.outlived_all() else run.revival.killer)


def not_run(rules: Iterable[Rule], killer: str) -> list[Result]:
    """Return the results of what was not run, since the broker died in the case `killer`."""
    reason = f"the broker died in {killer}, and did not come back"
    return [Result(rule, Verdict.NOT_RUN, 0.0, [], reason=reason) for rule in rules]


class Revival:
    """The returns of a broker that dies; `killer` is the name of the last case in which it died.

    A broker that `can_die` answered before the first case.
    """

    def __init__(self, options: Options, watcher: Watcher, *, can_die: bool) -> None:
        self.killer = ""
        self._can_die: Final = can_die
        self._options: Final = options
        self._watcher: Final = watcher

    async def is_dead(self) -> bool:
        """Return whether a broker that answered does not any more."""
        return self._can_die and not await answers(self._options)

    async def revived(self, killer: Result) -> bool:
        """Restart a dead broker, or wait for its supervisor; return whether it answers again."""
        self.killer = killer.case.name
        self._watcher.said(f"the broker died in {self.killer}")
        if self._options.restart is None:
            if await answers_within(BACK_S, self._options):
                self._watcher.said("the broker is back, the run goes on")
                return True
            self._watcher.said(
                f"the broker did not come back within {BACK_S:g} s: the other cases are not run."
                " With --restart they would be"
            )
            return False
        try:
            await restart(self._options)
        except RestartError as error:
            self._watcher.said(f"{error}: the other cases are not run")
            return False
        self._watcher.said("the broker was restarted, the run goes on")
        return True


class _Running:
    """The results so far, and the returns of the broker."""

    def __init__(self, options: Options, watcher: Watcher, *, can_die: bool) -> None:
        self.results: Final[list[Result]] = []
        self.revival: Final = Revival(options, watcher, can_die=can_die)
        self._options: Final = options
        self._watcher: Final = watcher

    async def judge(self, case: Case) -> bool:
        """Run a case and add its result; return whether the broker can be judged further.

        A broker that cannot be reached died of the case before, which then failed.
        """
        result = await judge(case, self._options)
        if result.is_unreachable and self.results and await self.revival.is_dead():
            self.results[-1] = killing(self.results[-1])
            if not await self.revival.revived(self.results[-1]):
                self.results.extend(not_run([case], self.revival.killer))
                return False
            result = await judge(case, self._options)
        is_alive = result.verdict is not Verdict.FAILED or not await self.revival.is_dead()
        self.results.append(result if is_alive else killing(result))
        self._watcher.judged(self.results[-1])
        return is_alive or await self.revival.revived(result)

    async def outlived_all(self) -> bool:
        """Return whether the broker answers after the last case, or is back.

        A broker that does neither died of the last case, which then failed.
        """
        if not self.results or not await self.revival.is_dead():
            return True
        self.results[-1] = killing(self.results[-1])
        return await self.revival.revived(self.results[-1])


def killing(result: Result) -> Result:
    """Return the result of a case in which the broker died: it failed, if not for other reasons."""
    if result.verdict is Verdict.FAILED:
        return replace(result, died=True)
    return replace(
        result, verdict=Verdict.FAILED, expected=ALIVE, got=DEAD, reason="", kind=None, died=True
    )
