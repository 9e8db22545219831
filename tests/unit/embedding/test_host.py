"""The thread of an embedded broker: where its functions are called, and how errors are returned."""

import asyncio
import threading

import pytest

from broker.embedding.host import LoopThread, call_on


def fail() -> None:
    raise LookupError("gone")


def test_a_call_from_another_thread_is_made_in_the_loops() -> None:
    thread = LoopThread()
    try:
        assert call_on(thread.loop, threading.current_thread) is not threading.current_thread()
        assert call_on(thread.loop, asyncio.get_running_loop) is thread.loop
        with pytest.raises(LookupError):
            call_on(thread.loop, fail)
    finally:
        thread.close()
    assert thread.loop.is_closed()


async def test_a_call_from_the_loop_is_made_there_and_then() -> None:
    loop = asyncio.get_running_loop()
    assert call_on(loop, threading.current_thread) is threading.current_thread()
    with pytest.raises(LookupError):
        call_on(loop, fail)


async def test_a_call_from_another_loop_is_made_in_the_first() -> None:
    thread = LoopThread()
    try:
        assert call_on(thread.loop, asyncio.get_running_loop) is thread.loop
    finally:
        thread.close()


def test_the_thread_does_not_keep_the_process_alive() -> None:
    thread = LoopThread()
    try:
        assert call_on(thread.loop, threading.current_thread).daemon
    finally:
        thread.close()
