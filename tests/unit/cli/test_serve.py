"""`jms-broker serve`: which options are parsed without typer, and what a running broker imports."""

import inspect
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner

from broker import __version__
from broker.cli.application import application
from broker.cli.serve import OPTIONS, plain_options
from broker.compiled import SLOWER, is_compiled

ROOT = Path(__file__).parents[3]

ARGUMENTS = [
    pytest.param([], {}, id="nothing"),
    pytest.param(["--port", "0"], {"port": "0"}, id="a value behind"),
    pytest.param(["--port=0"], {"port": "0"}, id="a value after ="),
    pytest.param(["--bind=::1"], {"bind": "::1"}, id="colons"),
    pytest.param(["--config", "a=b"], {"config": "a=b"}, id="= in a value"),
    pytest.param(["--config="], {"config": ""}, id="an empty value"),
    pytest.param(
        ["--bind", "h", "--store", "memory"], {"bind": "h", "store": "memory"}, id="several"
    ),
    pytest.param(["--port", "1", "--port", "2"], {"port": "2"}, id="the last counts"),
    pytest.param(["--help"], None, id="help"),
    pytest.param(["--port"], None, id="no value"),
    pytest.param(["--port", "--bind"], None, id="an option for a value"),
    pytest.param(["--port", "-1"], None, id="a negative number"),
    pytest.param(["--colour", "red"], None, id="unknown"),
    pytest.param(["--por", "1"], None, id="short for something"),
    pytest.param(["extra"], None, id="an argument"),
]


@pytest.mark.parametrize(("arguments", "expected"), ARGUMENTS)
def test_plain_options(arguments: list[str], expected: Mapping[str, str] | None) -> None:
    assert plain_options(arguments) == expected


def test_typer_knows_the_same_options() -> None:
    (serve,) = (
        registered.callback
        for registered in application.registered_commands
        if registered.callback is not None and registered.callback.__name__ == "serve"
    )
    assert set(inspect.signature(serve).parameters) == set(OPTIONS.values())


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, from this process's checkout or wheel."""
    return subprocess.run(
        [sys.executable, "-c", "from broker.cli import main; main()", *arguments],
        env={"PYTHONPATH": ":".join(filter(None, sys.path)), "PATH": "", **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_running_broker_carries_no_command_line() -> None:
    heavy = [
        "typer",
        "click",
        "rich",
        "proton",
        "argon2",
        "scramp",
        "tomlkit",
        "aiosqlite",
        "asyncpg",
        "sqlalchemy",
    ]
    program = f"""
import sys
from broker.cli.serve import plain_options, load_server
from broker.settings import load_settings
load_settings(**plain_options(["--port", "0"]))
load_server()
print([name for name in {heavy} if name in sys.modules])
"""
    found = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": ":".join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert found.stdout == "[]\n", found.stderr


FAILURES = [
    pytest.param(["--port", "70000"], {}, ["command line: port = '70000'"], id="a bad option"),
    pytest.param(
        [], {"JMS_BROKER_PROT": "1"}, ["JMS_BROKER_PROT", "JMS_BROKER_PORT"], id="unknown variable"
    ),
    pytest.param(["--config", "/none.toml"], {}, ["/none.toml: No such file"], id="no such file"),
    pytest.param(
        ["--bind", "0.0.0.0"],
        {},
        ["user add", "JMS_BROKER_ALLOW_ANONYMOUS"],
        id="open by oversight",
    ),
    pytest.param(["--colour", "red"], {}, ["--colour"], id="an unknown option"),
]


@pytest.mark.parametrize(("arguments", "variables", "told"), FAILURES)
def test_a_broker_that_must_not_start_says_why(
    arguments: list[str], variables: dict[str, str], told: list[str]
) -> None:
    done = run("serve", *arguments, **variables)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    for part in told:
        assert part in done.stderr


def test_an_address_that_is_not_ours_is_told() -> None:
    done = run("serve", "--bind", "192.0.2.1", "--port", "0", JMS_BROKER_ALLOW_ANONYMOUS="true")
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("jms-broker: cannot listen on amqp://192.0.2.1:0: ")
    assert "Traceback" not in done.stderr


def test_the_version_says_which_build_it_is() -> None:
    done = CliRunner().invoke(application, ["--version"])
    assert done.exit_code == 0
    build = "compiled" if is_compiled() else SLOWER
    assert done.stdout == f"jms-broker {__version__} ({build})\n"


@pytest.mark.parametrize(
    "command", ["serve", "send", "receive", "browse", "embed", "healthcheck", "user"]
)
def test_every_command_explains_itself(command: str) -> None:
    done = CliRunner().invoke(application, [command, "--help"])
    assert done.exit_code == 0
    assert "Usage:" in done.stdout
