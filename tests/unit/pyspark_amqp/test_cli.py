"""`jms-broker pipeline`: its help, and errors that it reports before Spark starts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
import typer
from typer.testing import CliRunner

from broker.cli.application import application
from pyspark_amqp.cli import conclude
from pyspark_amqp.cli_options import NO_LOGIN, Login, broker_options, with_login
from pyspark_amqp.engines.duckdb_engine import duckdb_engine
from pyspark_amqp.jobs.archive import dated
from pyspark_amqp.jobs.extent import Bounds
from pyspark_amqp.jobs.findings import CHECKS, LOSS, WHOLE
from pyspark_amqp.jobs.layout import EVENTS, Archive
from pyspark_amqp.jobs.local_archive import BatchFiles
from pyspark_amqp.jobs.running import cause_of, pairs, size_of
from pyspark_amqp.jobs.verdict import Verdict
from tests.spark.event_logs import Writer
from tests.spark.stories import accepted_twice, consumed

NOBODY: Final = "amqp://127.0.0.1:1"
"""A URL at which no broker listens."""

JOBS: Final = ("archive", "compact", "audit", "report", "replay")


def run(*arguments: str) -> tuple[int, str]:
    """Return the exit status, and standard error or output in one line."""
    done = CliRunner().invoke(application, ["pipeline", *arguments])
    text = re.sub(r"[│╭╮╰╯─\s]+", " ", done.output)
    return done.exit_code, text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return an archive that seems to have messages and an event log until its files are read."""
    for name in ("messages/date=2026-01-31/address=q", "events/date=2026-01-31"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "part-x.parquet").touch()
    return tmp_path


@pytest.mark.requirement("PIP-69")
@pytest.mark.parametrize("job", JOBS)
def test_help(job: str) -> None:
    status, text = run(job, "--help")
    assert status == 0
    assert "Exit status: 0" in text
    assert "ARCHIVE" in text


@pytest.mark.requirement("PIP-76")
def test_help_of_the_doctor() -> None:
    status, text = run("doctor", "--help")
    assert status == 0
    assert "Exit status: 0" in text


LOGINS: Final = [
    pytest.param("", {}, id="none"),
    pytest.param("--user ann", {"username": "ann", "password": "env"}, id="a user"),
    pytest.param(
        "--user ann --password p", {"username": "ann", "password": "p"}, id="with a password"
    ),
    pytest.param(
        "--user ann --token-file t", {"username": "ann", "tokenFile": "t"}, id="with a token"
    ),
    pytest.param(
        "--ca a --cert c", {"tls.caFile": "a", "tls.certFile": "c", "tls.keyFile": "c"}, id="one"
    ),
    pytest.param(
        "--cert c --key k --key-password-file p",
        {"tls.certFile": "c", "tls.keyFile": "k", "tls.keyPasswordFile": "p"},
        id="a certificate and its key",
    ),
]


@pytest.mark.requirement("SEC-09")
@pytest.mark.parametrize(("words", "login"), LOGINS)
def test_a_login_has_options_of_its_own(
    monkeypatch: pytest.MonkeyPatch, words: str, login: dict[str, str]
) -> None:
    found: list[tuple[str, dict[str, str]]] = []
    commands = typer.Typer()

    @commands.command()
    @with_login
    def job(place: str, login: Login = NO_LOGIN, more: list[str] | None = None) -> None:
        found.append((place, broker_options("amqps://h", login, None, more)))

    monkeypatch.setenv("JMS_BROKER_PASSWORD", "env")
    done = CliRunner().invoke(commands, ["folder", *words.split(), "--more", "mode=events"])
    assert done.exit_code == 0, done.output
    assert found == [("folder", {"url": "amqps://h", "mode": "events"} | login)]


def test_all_jobs_are_listed() -> None:
    status, text = run("--help")
    assert status == 0
    assert [name for name in JOBS if f" {name} " in text] == list(JOBS)


WRONG: Final = [
    ("archive ARCHIVE", 2, "messages of which queue? Give --address"),
    ("archive ARCHIVE --what messages", 2, "messages of which queue?"),
    ("archive ARCHIVE --address q --subscription durable/c/n", 2, "option address"),
    ("archive ARCHIVE --address q --every 30s", 2, "--mode lease"),
    ("archive ARCHIVE --address q --every soon", 2, "'soon' is not like 30s, 5m or 1h"),
    ("archive ARCHIVE --address q --every 0s", 2, "'0s' is not like 30s"),
    ("archive ARCHIVE --address q --mode take", 2, "browse"),
    ("archive ARCHIVE --address q -o adress=q", 2, "did you mean address?"),
    ("archive ARCHIVE --address q -o pollTimeoutMs=x --mode lease", 2, "option pollTimeoutMs"),
    ("archive ARCHIVE --address q -o propertiesAs=json", 2, "`archive` sets it itself"),
    (f"archive ARCHIVE --address {'q' * 248} --mode lease", 2, "255 are allowed"),
    ("archive ARCHIVE --address q -o nothing", 2, "'nothing' is not like NAME=VALUE"),
    ("archive ARCHIVE --address q --url http://h", 2, "option url"),
    ("archive ARCHIVE --address q --key k", 2, "option tls.certFile"),
    ("archive ARCHIVE --address q --token-file t", 2, "option username"),
    ("archive ARCHIVE --address q --url amqp://h --user u --token-file t", 2, "could read"),
    (f"archive ARCHIVE --address q --url {NOBODY}", 1, "no broker: amqp://127.0.0.1:1"),
    (f"archive HOLIDAY --address q --url {NOBODY}", 1, "name an empty or a new folder"),
    ("compact NOWHERE", 1, "is no folder: name the one that `archive` has written"),
    ("audit", 2, "--url, must be given"),
    ("audit NOWHERE", 3, "is no folder"),
    ("audit HOLIDAY", 3, "has no events: `jms-broker pipeline archive"),
    ("audit ARCHIVE --since yesterday", 2, "'yesterday' is neither like 15m"),
    ("audit ARCHIVE --since 1h --until 2h", 2, "it is not after --since"),
    ("audit ARCHIVE --out found.xls", 2, "its name ends in .csv or .parquet"),
    (f"audit ARCHIVE --url {NOBODY} --drained", 2, "it is looked into the queues"),
    (f"audit ARCHIVE --url {NOBODY}", 3, "no broker: amqp://127.0.0.1:1"),
    ("audit ARCHIVE --out ARCHIVE/events/date=2026-01-31/part-x.parquet/found.csv", 3, "part-x"),
    ("audit ARCHIVE --out TABLE", 3, "table.csv: it cannot be written"),
    ("report", 2, "either it or --url must be given"),
    (f"report ARCHIVE --url {NOBODY}", 2, "either it or --url must be given"),
    ("report HOLIDAY", 1, "has no events"),
    ("replay NOWHERE", 1, "is no folder"),
    ("replay HOLIDAY", 1, "has no messages: `jms-broker pipeline archive"),
    ("replay ARCHIVE --skip 5", 2, "it goes with --rate"),
    ("replay ARCHIVE --rate 0", 2, "0.001"),
    ("replay ARCHIVE --id @NOWHERE", 2, "No such file"),
    ("replay ARCHIVE --id @EMPTY", 2, "the file has no id in it"),
    ("replay ARCHIVE -o mode=lease", 2, "option mode"),
    (f"replay ARCHIVE --url {NOBODY} -o amqp.timeout=100ms", 1, "no broker"),
]


@pytest.mark.requirement("PIP-69")
@pytest.mark.parametrize(("line", "status", "text"), WRONG, ids=[each[0] for each in WRONG])
def test_what_is_wrong_is_told_before_spark_starts(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, line: str, status: int, text: str
) -> None:
    other = tmp_path_factory.mktemp("other")
    (other / "holiday.jpg").touch()
    (other / "empty").touch()
    (other / "table.csv").mkdir()
    places = {
        "ARCHIVE": folder,
        "HOLIDAY": other,
        "NOWHERE": other / "no",
        "EMPTY": other / "empty",
        "TABLE": other / "table.csv",
    }
    words = [
        re.sub("[A-Z]{5,}", lambda found: str(places[found[0]]), each) for each in line.split()
    ]
    done, told = run(*words)
    assert text in told
    assert done == status


SOME: Final = Bounds(5, 1, 5, 0, 1, 1, None, 0, 0)
NONE: Final = dict.fromkeys(CHECKS, 0)

ENDS: Final = [
    ("all holds", Verdict(SOME, 2, {}, NONE, NONE), 0, ""),
    ("one is broken", Verdict(SOME, 2, {}, NONE, {**NONE, LOSS: 1}), 1, ""),
    ("rows are missing", Verdict(SOME, 2, {}, NONE, {**NONE, WHOLE: 1}), 1, ""),
    ("never came, all of it", Verdict(SOME, 0, {}, NONE, {**NONE, LOSS: 1}), 1, ""),
    ("an address with a slip", Verdict(SOME, 0, {}, NONE, NONE), 3, "see --address"),
    ("no event log", Verdict(replace(SOME, rows=0), 0, {}, NONE, NONE), 3, "event_log = true"),
]


@pytest.mark.requirement("PIP-63")
@pytest.mark.parametrize(
    ("verdict", "status", "text"), [each[1:] for each in ENDS], ids=[each[0] for each in ENDS]
)
def test_how_an_audit_ends(
    verdict: Verdict, status: int, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = 0
    try:
        conclude(verdict)
    except typer.Exit as exit_:
        ended = exit_.exit_code
    assert ended == status
    assert text in capsys.readouterr().err


@pytest.mark.requirement("PIP-69")
@pytest.mark.parametrize(
    ("module", "engine", "extra"),
    [
        ("pyspark", "--engine=spark", "spark"),
        ("duckdb", "--engine=duckdb", "pipeline"),
        ("pyarrow", "--engine=spark", "spark"),
        ("proton", "--engine=duckdb", "pipeline"),
    ],
)
def test_without_the_extra_it_says_what_to_install(
    tmp_path: Path, module: str, engine: str, extra: str
) -> None:
    done = without(module, ["pipeline", "report", str(tmp_path), engine])
    assert done.returncode == 1
    assert done.stderr == f"jms-broker: {module} is missing: pip install 'jms-broker[{extra}]'\n"


@pytest.mark.requirement("PIP-75")
def test_without_pyspark_the_jobs_run_on_duckdb(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    told = Writer()
    consumed(told, "q")
    with duckdb_engine() as engine:
        events = dated(told.table(engine), EVENTS)
        BatchFiles(archive, EVENTS, "query", 0).write(events)
    done = without("pyspark", ["pipeline", "audit", str(tmp_path), "--drained", "--json"])
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["holds"] is True
    assert done.stderr == "audit: reading the event log\naudit: judging 3 events\n"


@pytest.mark.requirement("PIP-75")
def test_without_duckdb_files_are_merged(tmp_path: Path) -> None:
    done = without("duckdb", ["pipeline", "compact", str(tmp_path), "--json"])
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["job"] == "compact"


@pytest.mark.requirement("PIP-77")
def test_without_duckdb_the_jobs_of_a_file_run(tmp_path: Path) -> None:
    file = tmp_path / "jobs.toml"
    file.write_text(f'[[job]]\nrun = "compact"\narchive = "{tmp_path}"\njson = true\n')
    done = without("duckdb", ["pipeline", "run", str(file)])
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["job"] == "compact"


@pytest.mark.requirement("PIP-77")
@pytest.mark.parametrize(
    ("secret", "place"),
    [
        ('password = "hush"', 'archive = "NOWHERE"\n'),
        ('option = ["password=hush"]', 'archive = "NOWHERE"\n'),
        ('password = "hush"', ""),
    ],
    ids=["an option of its own", "any option", "without an archive"],
)
def test_passwords_in_a_file_are_not_printed(tmp_path: Path, secret: str, place: str) -> None:
    file = tmp_path / "jobs.toml"
    named = place.replace("NOWHERE", str(tmp_path / "no"))
    file.write_text(f'[[job]]\nrun = "audit"\n{named}url = "{NOBODY}"\nuser = "ann"\n{secret}\n')
    status, text = run("run", str(file))
    assert status == 3
    assert f"--- audit {tmp_path / 'no'}" in text if place else "--- audit " in text
    assert "hush" not in text


@pytest.mark.requirement("PIP-77")
def test_the_jobs_of_a_file_run_one_after_another_until_one_fails(tmp_path: Path) -> None:
    told = Writer()
    consumed(told, "q")
    accepted_twice(told, "r")
    with duckdb_engine() as engine:
        BatchFiles(Archive(tmp_path), EVENTS, "query", 0).write(dated(told.table(engine), EVENTS))
    common = f'engine = "duckdb"\njson = true\n[[job]]\narchive = "{tmp_path}"\n'
    table = f'[[job]]\narchive = "{tmp_path}"\n'
    file = tmp_path / "jobs.toml"
    file.write_text(
        f'{common}run = "audit"\naddress = "q"\n{table}run = "audit"\n{table}run = "report"\n'
    )
    done = CliRunner().invoke(application, ["pipeline", "run", str(file)])
    assert done.exit_code == 1, done.output
    holds = [json.loads(line)["holds"] for line in done.stdout.splitlines()]
    assert holds == [True, False], "the report is not made"
    file.write_text(f'{common}run = "audit"\n{table}run = "audit"\nshow = "many"\n')
    status, text = run("run", str(file))
    assert status == 2
    assert "Invalid value for '--show'" in text
    assert "---" not in text, "no job has begun"


def without(module: str, words: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command in a Python that lacks a module."""
    program = (
        f"import sys; sys.modules[{module!r}] = None; sys.argv[1:] = {words!r};"
        "import jms_broker; jms_broker.main()"
    )
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )


LONG: Final = """\
org.apache.spark.SparkException: Job aborted
  File ...
pyspark_amqp.errors.BrokerError: the broker is full
\tat org.x(Y.scala)
Caused by: java.io.IOException: pipe
"""

CAUSES: Final = [
    ("Job aborted\nx.y.PythonException: boom\nmore", "boom"),
    (LONG, "the broker is full"),
    ("pyspark_amqp.options.OptionError: option url: no\n", "option url: no"),
    (
        "[PATH_NOT_FOUND] Path does not exist: /x. SQLSTATE: 42K03\nmore",
        "[PATH_NOT_FOUND] Path does",
    ),
]


@pytest.mark.requirement("PIP-69")
@pytest.mark.parametrize(("text", "cause"), CAUSES)
def test_the_line_that_says_why(text: str, cause: str) -> None:
    assert cause_of(text).startswith(cause)


def test_small_words() -> None:
    assert pairs(["a=1", "b=x=y"], "-o") == {"a": "1", "b": "x=y"}
    assert [size_of(size) for size in (0, 1023, 1536, 5 << 40)] == [
        "0 B",
        "1023 B",
        "1.5 KiB",
        "5.0 TiB",
    ]
