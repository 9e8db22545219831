"""`jms-broker conformance` as a user runs it: two tests start it, the others by `preloaded.py`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import pytest

from broker import __version__
from tests.conformance.asked import Asked, CannotRun, options_of
from tests.conformance.command import EXIT_STATUSES, exit_status
from tests.conformance.harness import Result, Rule
from tests.conformance.outputs import check_outputs
from tests.conformance.report_file import read_json
from tests.conformance.verdict import Options, Verdict
from tests.interop.broker_process import PASSWORD, USER, BrokerProcess, command, environment
from tests.interop.preloaded import preloaded_command
from tests.interop.secured_broker import SHOP, SHOP_PASSWORD, SecuredBroker


def run(*arguments: str, program: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """Run the command to its end in a process that has loaded it, or anew by `program`."""
    return subprocess.run(
        [*(program or preloaded_command()), "conformance", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(),
        check=False,
    )


def test_a_clause_with_reports(broker_with_users: BrokerProcess, tmp_path: Path) -> None:
    junit, html = tmp_path / "report.xml", tmp_path / "report.html"
    done = run(
        broker_with_users.url,
        *("--user", USER, "--password", PASSWORD, "--clause", "2.3"),
        *("--junit", str(junit), "--html", str(html)),
        program=command(),
    )
    assert (done.returncode, done.stderr) == (0, "")
    count = len(ET.parse(junit).findall("testcase"))
    assert count > 10
    assert done.stdout == f"{count} cases: {count} passed, 0 failed, 0 not applicable\n"
    assert html.read_text().startswith("<!doctype html>")


def test_a_case_by_its_name_is_shown_with_its_frames(broker_with_users: BrokerProcess) -> None:
    done = run(broker_with_users.url, "--case", "unknown_version_is_answered_with_a_header")
    assert done.returncode == 0
    assert "→ header AMQP 0.9.9.9" in done.stdout


LOCKED_OUT: Final = [
    pytest.param((), "and a user is not given", id="no user"),
    pytest.param(
        ("--user", "nobody", "--password", "x"), "refuses the login of nobody", id="no such user"
    ),
    pytest.param(
        ("--user", USER, "--password", PASSWORD, "--mechanism", "EXTERNAL"),
        "and --mechanism is EXTERNAL",
        id="a mechanism that is not offered",
    ),
]


@pytest.mark.parametrize(("login", "told"), LOCKED_OUT)
def test_nothing_is_run_that_needs_a_login_which_is_refused(
    broker_with_users: BrokerProcess, login: tuple[str, ...], told: str
) -> None:
    done = run(broker_with_users.url, *login, "--clause", "2.5.1", "--clause", "5.3.1")
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    alone = run(
        broker_with_users.url, *login, "--case", "unknown_version_is_answered_with_a_header"
    )
    assert alone.returncode == 0, alone.stderr


def test_a_terminal_without_arrows_gets_escapes(
    open_broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    case = ("--case", "unknown_version_is_answered_with_a_header")
    # the encoding is read when Python starts
    done = run(open_broker.url, *case, program=command())
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\u2192 header AMQP 0.9.9.9" in done.stdout


def test_a_case_that_fails_is_told_by_the_exit_status(open_broker: BrokerProcess) -> None:
    """The case fails because the broker creates the address that should be missing."""
    done = run(
        open_broker.url,
        *("--case", "a_missing_address_is_not_found", "--missing-address", "not-missing-at-all"),
    )
    assert done.returncode == 1
    assert "failed: jms 4.3 a_missing_address_is_not_found" in done.stdout


def test_the_list_has_clause_source_and_sentence() -> None:
    done = run(
        "--list", "--clause", "2.2", "--clause", "jms:8", "--case", "a_missing_address_is_not_found"
    )
    assert (done.returncode, done.stderr) == (0, "")
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert {(source, clause.partition(".")[0]) for source, clause, _, _ in rows} == {
        ("core", "2"),
        ("jms", "8"),
        ("jms", "4"),
    }
    assert ["core", "2.2", "unknown_version_is_answered_with_a_header"] in [row[:3] for row in rows]
    assert all(sentence.endswith(".") for *_, sentence in rows)
    assert run("run", "--list", "--clause", "2.2").stdout in done.stdout


KNOWN: Final = [
    pytest.param("not-missing", 0, "1 failed (1 known)", id="it fails as expected"),
    pytest.param("missing.node", 3, "expected to fail by --known", id="it passes"),
]


@pytest.mark.parametrize(("missing", "status", "told"), KNOWN)
def test_known_failures(
    open_broker: BrokerProcess, tmp_path: Path, missing: str, status: int, told: str
) -> None:
    known, report = tmp_path / "known.toml", tmp_path / "report.json"
    known.write_text("[failures]\na_missing_address_is_not_found = 'it is made, see issue 7'\n")
    cases = ("--case", "a_missing_address_is_not_found", "--case", "row_9_looks_up")
    files = ("--known", str(known), "--json", str(report))
    done = run(open_broker.url, *cases, "--missing-address", missing, *files)
    assert done.returncode == status, done.stdout + done.stderr
    assert told in done.stdout
    assert "known:    it is made, see issue 7" in done.stdout
    content = read_json(report)
    assert (content.broker.product, content.broker.version) == ("jms-broker", __version__)
    assert [bool(each.known) for each in content.results].count(True) == 1
    assert content.options["missing_address"] == missing
    assert "known" in content.options


STATUSES: Final = [
    pytest.param([Verdict.PASSED, Verdict.NOT_APPLICABLE], "", 0, id="nothing failed"),
    pytest.param([Verdict.FAILED], "", 1, id="a failure"),
    pytest.param([Verdict.FAILED], "why", 0, id="a known failure"),
    pytest.param([Verdict.PASSED], "why", 3, id="an unexpected pass"),
    pytest.param([Verdict.FAILED, Verdict.NOT_RUN], "", 4, id="cases that were not run"),
]


@pytest.mark.parametrize(("verdicts", "known", "status"), STATUSES)
def test_the_exit_status_is_by_kind(verdicts: list[Verdict], known: str, status: int) -> None:
    rule = Rule("x", "core", "2.2", "It is.")
    results = [Result(rule, verdict, 0.1, [], known=known) for verdict in verdicts]
    assert exit_status(results) == status


def test_the_help_has_every_exit_status() -> None:
    told = " ".join(run("--help").stdout.replace("│", " ").split())
    assert told.endswith(
        " ".join(
            f"{EXIT_STATUSES} The command `compare` puts reports of --json side by side.".split()
        )
    )


@pytest.mark.parametrize("exists", [False, True], ids=["a new file", "an old file"])
def test_a_report_that_may_not_be_written_is_told_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exists: bool
) -> None:
    file = tmp_path / "report.json"
    if exists:
        file.touch()
    asked: list[Path] = []

    def refused(path: Path, _: int) -> bool:
        asked.append(path)
        return False

    # the user of these tests may write everywhere
    monkeypatch.setattr(os, "access", refused)
    with pytest.raises(CannotRun, match="may not be written"):
        check_outputs([None, file])
    assert asked == [file if exists else tmp_path]


def test_each_report_needs_a_file_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "report"
    with pytest.raises(CannotRun, match="it is named twice"):
        check_outputs([file, None, tmp_path / ".." / tmp_path.name / "report"])
    check_outputs([Path("/dev/null"), Path("/dev/null")])


@pytest.mark.parametrize("file", ["/dev/full", "/dev/null"])
def test_a_disk_that_is_full_at_the_end_loses_one_report(
    open_broker: BrokerProcess, tmp_path: Path, file: str
) -> None:
    json = tmp_path / "report.json"
    chosen = ("--case", "unknown_version_is_answered_with_a_header")
    done = run(open_broker.url, *chosen, "--html", file, "--json", str(json))
    is_full = file == "/dev/full"
    assert done.returncode == (2 if is_full else 0), done.stderr
    assert done.stdout.endswith("1 cases: 1 passed, 0 failed, 0 not applicable\n")
    expected = "conformance: /dev/full: it cannot be written: No space left on device\n"
    assert done.stderr == (expected if is_full else "")
    assert len(read_json(json).results) == 1


def test_a_broker_that_names_topics_otherwise(open_broker: BrokerProcess) -> None:
    templates = ("topic=amq.topic/{name}", "queue=queues.{name}")
    options = [word for each in templates for word in ("--address-template", each)]
    done = run(open_broker.url, *options, "--case", "a_topic_has_many_subscribers")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "address='amq.topic/topic.conformance." in done.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        pytest.param(["amqp://127.0.0.1:1"], "127.0.0.1:1: ", id="nobody there"),
        pytest.param(["http://127.0.0.1"], "is not like amqp://HOST:PORT", id="another scheme"),
        pytest.param(["amqp://127.0.0.1:many"], "amqp://127.0.0.1:many: ", id="no port"),
        pytest.param(["amqp://h", "--case", "no such"], "no case is called so", id="no case"),
        pytest.param(
            ["amqp://h", "--clause", "2.2", "--clause", "9"], "to such a clause: 9", id="no clause"
        ),
        pytest.param([], "which broker? Give its URL", id="no broker"),
        pytest.param(
            ["amqp://h", "--address-template", "topic=x"], "is not like topic=", id="no {name}"
        ),
        pytest.param(
            ["amqp://h", "--known", "no.toml"], "no.toml: it cannot be read", id="no known failures"
        ),
        pytest.param(["amqp://h", "--json", "no/x.json"], "there is no folder no", id="no folder"),
        pytest.param(["amqp://h", "--html", "/"], "/: it is a folder", id="a folder"),
        pytest.param(["amqp://h", "--cert", "no"], "--cert is for TLS", id="no TLS for it"),
        pytest.param(["amqps://h", "--key", "no"], "needs --cert", id="no certificate"),
        pytest.param(
            ["amqp://h", "--mechanism", "GSSAPI"], "GSSAPI is none of PLAIN", id="unknown"
        ),
        pytest.param(["amqp://h", "--ca", "ca.pem"], "--ca is for TLS: write amqps", id="no TLS"),
        pytest.param(["amqps://h", "--ca", "no"], "--ca no: there is no such file", id="no file"),
    ],
)
def test_what_cannot_be_run(arguments: list[str], told: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stdout == ""


def test_the_address_and_who_logs_in() -> None:
    assert options_of(Asked("amqp://[::1]")) == Options("::1", 5672)
    encrypted = options_of(Asked("amqps://h"))
    assert (encrypted.port, encrypted.context is not None) == (5671, True)
    given = options_of(Asked("amqp://a%40b:p%3Aw@h:7", timeout=1))
    assert given == Options("h", 7, user="a@b", password="p:w", timeout_s=1)
    overruled = options_of(Asked("amqp://a:b@h", user="x%", password="y"))
    assert (overruled.user, overruled.password) == ("x%", "y")
    with pytest.raises(CannotRun):
        options_of(Asked("h:5672"))
    with pytest.raises(CannotRun, match="QUEUE=DEAD_LETTERS"):
        options_of(Asked("amqp://h", dead_letter_address="queue"))


SECRETS: Final = [
    pytest.param("http://user:secret@h", "http://…@h is not like", id="another scheme"),
    pytest.param("user:secret@h:5672", "…@h:5672 is not like", id="no scheme"),
    pytest.param("user:secret://secret@h", "…@h is not like", id="a password like a scheme"),
    pytest.param("amqp://user:secret@h:many", "amqp://…@h:many: ", id="a wrong port"),
    pytest.param("amqp://user:secret/secret@h", "…@h: .* %2F", id="a password to be quoted"),
    pytest.param("amqp://user:secret@more@[h", r"amqp://…@\[h: ", id="a wrong host"),
]


@pytest.mark.parametrize(("url", "told"), SECRETS)
def test_a_wrong_url_is_told_without_its_login(url: str, told: str) -> None:
    with pytest.raises(CannotRun, match=told) as caught:
        options_of(Asked(url))
    assert "secret" not in str(caught.value)
    assert "user" not in str(caught.value)


LOGINS = [
    pytest.param("asking", ["--mechanism", "SCRAM-SHA-512"], SHOP, id="SCRAM"),
    pytest.param("demanding", ["shop"], None, id="a certificate alone"),
]


@pytest.mark.requirement("SEC-01", "SEC-02")
@pytest.mark.parametrize(("listener", "options", "user"), LOGINS)
def test_a_login_over_tls(
    secured_broker: SecuredBroker, listener: str, options: list[str], user: str | None
) -> None:
    if user is None:
        name = options[0]
        files = [secured_broker.file(f"{name}.pem"), secured_broker.file(f"{name}.key")]
        options = ["--cert", files[0], "--key", files[1]]
    else:
        options = [*options, "--user", user, "--password", SHOP_PASSWORD]
    url = secured_broker.tls_url(listener=listener).replace("amqps://", "amqp://")
    case = ("--case", "connection_begins_behind_the_outcome")
    done = run(url, "--tls", "--ca", secured_broker.file("ca.pem"), *options, *case)
    assert done.returncode == 0, done.stdout + done.stderr
    chosen = "SCRAM-SHA-512" if user is not None else "EXTERNAL"
    assert f"sasl-init(mechanism={chosen}" in done.stdout
    assert done.stdout.endswith("1 cases: 1 passed, 0 failed, 0 not applicable\n")
