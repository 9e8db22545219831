"""`jms-broker embed`: the command gets the address, its status is returned, signals reach it."""

import signal
import subprocess
import sys

import pytest

ENTRY = [sys.executable, "-c", "from broker.cli import main; main()", "embed", "--"]
ENVIRONMENT = {"PYTHONPATH": ":".join(filter(None, sys.path)), "PATH": "", "KEPT": "yes"}

CONNECTS = """
import os, socket
host, port = os.environ["JMS_BROKER_URL"].removeprefix("amqp://").split(":")
with socket.create_connection((host, int(port))) as client:
    client.sendall(b"AMQP\\0\\1\\0\\0")
    print(client.recv(8), os.environ["KEPT"])
"""


def embedded(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*ENTRY, *command],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_command_finds_a_broker_where_the_variable_says() -> None:
    done = embedded(sys.executable, "-c", CONNECTS)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{b'AMQP' + bytes([0, 1, 0, 0])!r} yes\n"


STATUSES = [
    pytest.param("raise SystemExit(3)", 3, id="its own"),
    pytest.param("import os; os.kill(os.getpid(), 9)", 128 + 9, id="of a signal, as in a shell"),
]


@pytest.mark.parametrize(("program", "status"), STATUSES)
def test_the_status_is_that_of_the_command(program: str, status: int) -> None:
    assert embedded(sys.executable, "-c", program).returncode == status


def test_a_command_that_is_not_there_is_told() -> None:
    done = embedded("/no/such/command")
    assert done.returncode == 127
    assert done.stderr == "jms-broker: cannot run /no/such/command: No such file or directory\n"


def test_being_told_to_stop_is_passed_on() -> None:
    waits = "import signal; print('waiting', flush=True); signal.pause()"
    with subprocess.Popen(
        [*ENTRY, sys.executable, "-c", waits], env=ENVIRONMENT, stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"waiting\n"
            process.terminate()
            assert process.wait(timeout=30) == 128 + signal.SIGTERM
        finally:
            process.kill()
