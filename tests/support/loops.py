"""Tests that run once on uvloop, as the broker does, and once on asyncio's own loop."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import ParamSpec

import pytest
import uvloop

P = ParamSpec("P")
NewLoop = Callable[[], asyncio.AbstractEventLoop]


def on_both_loops(
    test: Callable[P, Coroutine[object, object, None]],
) -> Callable[..., None]:
    """Return `test`, which may take fixtures that need no loop, as a test of both loops."""

    def run(new_loop: NewLoop, *args: P.args, **kwargs: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(test(*args, **kwargs))

    # all but `__wrapped__`, by which pytest would take it for a coroutine
    functools.update_wrapper(run, test)
    del run.__wrapped__  # type: ignore[attr-defined]
    parameters = inspect.signature(test).parameters.values()
    new_loop = inspect.Parameter("new_loop", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    run.__signature__ = inspect.Signature([new_loop, *parameters])  # type: ignore[attr-defined]
    marked: Callable[..., None] = pytest.mark.parametrize(
        "new_loop",
        [
            pytest.param(uvloop.new_event_loop, id="uvloop"),
            pytest.param(asyncio.SelectorEventLoop, id="asyncio"),
        ],
    )(run)
    return marked
