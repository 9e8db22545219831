"""The end of a command: an interrupt, and a missing client library."""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest
import typer

from broker.cli.ending import EXIT_INTERRUPTED, errors_told

SECONDS = 60


class InterruptedAtItsEnd:
    """An object that is interrupted by ^C in its finalizer, where Python drops the exception."""

    def __del__(self) -> None:
        interrupt()


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Let the tests be interrupted even if a shell runs them in the background, ignoring SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize(
    "interrupted",
    [
        pytest.param(interrupt, id="at once"),
        pytest.param(InterruptedAtItsEnd, id="where Python drops it"),
    ],
)
def test_an_interrupt_ends_the_command(
    interrupted: Callable[[], object], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended:
        wait_after(interrupted)
    assert ended.value.exit_code == EXIT_INTERRUPTED
    assert capsys.readouterr() == ("", "")


def wait_after(interrupted: Callable[[], object]) -> None:
    with errors_told():
        interrupted()
        threading.Event().wait(SECONDS)


class FailsAtItsEnd:
    """An object whose finalizer fails."""

    def __del__(self) -> None:
        raise KeyError("_attrs")


def uninitialized_link() -> object:
    """Make an object of proton as it is if ^C comes before its `__init__`."""
    proton = pytest.importorskip("proton")
    return proton.Link.__new__(proton.Link)


@pytest.mark.parametrize(
    ("unfinished", "told"),
    [
        pytest.param(uninitialized_link, "", id="of proton, not initialized"),
        pytest.param(FailsAtItsEnd, "KeyError: '_attrs'", id="of another library"),
    ],
)
def test_a_failed_finalizer_is_told_unless_it_is(
    unfinished: Callable[[], object], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(
        sys, "unraisablehook", lambda dropped: seen.append(f"KeyError: {dropped.exc_value}")
    )
    with errors_told():
        unfinished()
    assert seen == ([told] if told else [])


def test_a_missing_client_library_is_told_with_what_to_do() -> None:
    program = "import sys; sys.modules['proton'] = None; from broker.cli import main; main()"
    for arguments in (["send", "a", "x"], ["node", "list"]):
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            env={"PYTHONPATH": ":".join(filter(None, sys.path))},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert (done.returncode, done.stdout) == (1, "")
        (line,) = done.stderr.splitlines()
        assert line.startswith("jms-broker: the client library proton is missing.")
        assert "pip install 'jms-broker[client]'" in line
        assert "HTTP" in line
