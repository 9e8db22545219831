"""The suite of JMS rules: this broker on every rule, what a run reports, and broken brokers."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from pathlib import Path

import pytest

from tests.conformance import running
from tests.conformance.asked import Asked, CannotRun, options_of, tls_files
from tests.conformance.command import run
from tests.conformance.harness import Result, all_cases
from tests.conformance.jms_api import runner
from tests.conformance.jms_api.catalogue import SOURCES, JmsRule, jms_rules
from tests.conformance.jms_api.java_suite import java_command
from tests.conformance.jms_api.runner import JmsRun, judge_jms, result_of, variables
from tests.conformance.report import in_text
from tests.conformance.report_file import read_json
from tests.conformance.test_over_websocket import WebBroker
from tests.conformance.verdict import Kind, Options, Verdict
from tests.harness_mutants.null_broker import null_broker
from tests.interop.broker_process import PASSWORD, ROOT, USER, BrokerProcess
from tests.interop.conftest import not_available
from tests.interop.secured_broker import SecuredBroker

RULES = {rule.name: rule for rule in jms_rules()}


def need_java() -> None:
    """Skip without Java; under CI=true fail."""
    for tool in ("java", "javac", "mvn"):
        if shutil.which(tool) is None:
            not_available(f"{tool} is not installed: no test of the suite in Java")


def rules_of(*names: str) -> list[JmsRule]:
    return [RULES[name] for name in names]


def judged(asked: Asked, names: list[str]) -> dict[str, Result]:
    """Run the rules of these names; return their results by name."""
    suite = JmsRun(java_command(None))
    found = asyncio.run(judge_jms(rules_of(*names), options_of(asked), suite))
    return {result.case.name: result for result in found}


# ---- this broker ------------------------------------------------------------------------


@pytest.fixture(scope="session")
def results(request: pytest.FixtureRequest, broker_with_users: BrokerProcess) -> dict[str, Result]:
    """Return the results of the selected rules, which run when this is first asked for."""
    need_java()
    selected = [
        str(item.callspec.params["name"])
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.originalname == test_jms_rule.__name__
    ]
    asked = Asked(
        broker_with_users.url,
        user=USER,
        password=PASSWORD,
        missing_address="missing.node",
        rejecting_address="small.rejecting",
    )
    return judged(asked, selected)


@pytest.mark.slow
@pytest.mark.parametrize("name", RULES)
def test_jms_rule(name: str, results: dict[str, Result]) -> None:
    result = results[name]
    # a later version of the client may keep a rule: its note is then to be removed
    kind = Kind.CLIENT if RULES[name].client_breaks_it else None
    verdict = Verdict.PASSED if kind is None else Verdict.NOT_APPLICABLE
    assert (result.verdict, result.kind) == (verdict, kind), in_text(result, frames=True)


# ---- the catalogue ----------------------------------------------------------------------


def test_every_test_is_in_the_catalogue() -> None:
    """A test that is written otherwise than Rule.java says would never be run."""
    written = sum(file.read_text().count("@Rule(") for file in SOURCES.glob("*Tests.java"))
    assert len(jms_rules()) == written > 150


def test_every_class_is_run() -> None:
    listed = set(re.findall(r"(\w+)\.class\b", (SOURCES / "Main.java").read_text()))
    assert listed >= {file.stem for file in SOURCES.glob("*Tests.java")}


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("docs/conformance.md", "(conformance/jms-api.md)) | {} |"),
        ("docs/conformance/jms-api.md", "\n{} cases: "),
        ("CHANGELOG.md", "[{} rules of JMS]"),
    ],
)
def test_documents_know_their_number(page: str, words: str) -> None:
    assert words.format(len(jms_rules())) in (ROOT / page).read_text()


def test_names_are_those_of_one_case_each() -> None:
    names = [rule.name for rule in jms_rules()] + [case.name for case in all_cases()]
    assert len(names) == len(set(names))


# ---- a broker that breaks rules ---------------------------------------------------------

UNFIT = """\
max_delivery_count = 1
dead_letter = ""
exclusive = true
"""
"""Settings that JMS does not allow: what comes back is lost, and a queue has one consumer."""

BROKEN = [
    "connection_close_rolls_back",
    "consumed_messages_come_again_after_rollback",
    "without_acknowledge_messages_come_again",
    "durable_subscription_redelivers",
    "consumers_with_different_selectors_share_a_queue",
    "true_alone_matches",
]


@pytest.mark.slow
def test_a_broken_broker_is_found_out(tmp_path: Path) -> None:
    """Each rule that the settings break has failed, with what was expected, and the frames."""
    need_java()
    broker = BrokerProcess(tmp_path, settings=UNFIT)
    try:
        found = judged(Asked(broker.url, timeout=0.5), [*BROKEN, "queue_holds_messages"])
    finally:
        broker.stop()
    assert found["queue_holds_messages"].verdict is Verdict.PASSED
    for name in BROKEN:
        result = found[name]
        assert result.verdict is Verdict.FAILED, name
        assert result.expected, name
        assert result.got, name
        assert any("Attach" in line for line in result.conversation), name


UNSHOWN = [
    "browser_of_an_empty_queue",
    "comparisons_with_null_are_unknown",
    "completions_keep_the_order_of_sends",
    "deleted_temporary_destination_takes_nothing",
    "session_close_ends_subscriptions",
    "temporary_destination_ends_with_its_connection",
    "topic_without_subscriptions_takes_messages",
    "try_with_resources_closes_the_context",
    "unlike_types_do_not_compare",
]
"""Rules that something does not happen: each test shows first that it would be noticed."""


@pytest.mark.slow
def test_a_broker_that_delivers_nothing_keeps_no_rule() -> None:
    need_java()
    suite = JmsRun(java_command(None))

    async def found() -> list[Result]:
        async with null_broker() as port:
            options = Options("127.0.0.1", port, timeout_s=0.2)
            return await judge_jms(rules_of(*UNSHOWN), options, suite)

    passed = [each.case.name for each in asyncio.run(found()) if each.verdict is Verdict.PASSED]
    assert passed == []


# ---- a run ------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_on_the_command_line(
    broker_with_users: BrokerProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rules of both kinds are in one report, and the password is in none."""
    need_java()
    file = tmp_path / "report.json"
    asked = Asked(
        broker_with_users.url,
        user=USER,
        password=PASSWORD,
        jms=True,
        clause=["2.2", "jms-api:6.1.6"],
        case=["client_id_is_free_after_close"],
        json=file,
    )
    assert run(asked) == 0
    printed = capsys.readouterr().out
    assert "passed: jms-api 6.1.2 client_id_is_free_after_close" in printed
    assert "SaslInit{mechanism=PLAIN…}" in printed
    sources = {result.case.source for result in read_json(file).results}
    assert sources == {"core", "jms-api"}
    assert PASSWORD not in printed
    assert PASSWORD not in file.read_text()


REACHED = ["client_id_is_free_after_close", "messages_arrive_in_their_order"]


def all_pass(asked: Asked) -> None:
    """Run some rules as the command does, with its files for TLS; each must pass."""
    ca, cert, key = tls_files(asked)
    suite = JmsRun(java_command(None), ca=ca, cert=cert, key=key)
    found = asyncio.run(judge_jms(rules_of(*REACHED), options_of(asked), suite))
    for result in found:
        assert result.verdict is Verdict.PASSED, in_text(result, frames=True)


@pytest.mark.slow
@pytest.mark.requirement("SEC-01", "SEC-02")
def test_a_certificate_logs_in_over_tls(secured_broker: SecuredBroker) -> None:
    need_java()
    own, key = Path(secured_broker.file("shop.pem")), Path(secured_broker.file("shop.key"))
    url = secured_broker.tls_url(listener="demanding")
    all_pass(Asked(url, ca=Path(secured_broker.file("ca.pem")), cert=own, key=key))


@pytest.mark.slow
@pytest.mark.requirement("SEC-06")
def test_websocket_within_tls(tmp_path: Path) -> None:
    need_java()
    broker = WebBroker(tmp_path)
    try:
        all_pass(Asked(broker.listeners["web-tls"], ca=broker.ca))
    finally:
        broker.stop()


LINE: dict[str, object] = {
    "name": "unselectedMessagesStay",
    "clause": "4.1.2",
    "verdict": "failed",
    "expected": "a message",
    "got": "none",
    "kind": "",
    "reason": "",
    "ms": 1500,
    "log": ["→ connection 1, channel 0 AMQP"],
}

RULE = RULES["unselected_messages_stay"]


def test_a_line_becomes_a_result() -> None:
    result = result_of(RULE, LINE, Options("h", 1))
    assert (result.verdict, result.expected, result.got) == (Verdict.FAILED, "a message", "none")
    assert (result.seconds, result.conversation) == (1.5, LINE["log"])


@pytest.mark.parametrize(("named", "count"), [((), 0), ((RULE.name,), 1)])
def test_frames_of_a_pass_are_kept_if_it_was_named(named: tuple[str, ...], count: int) -> None:
    result = result_of(RULE, {**LINE, "verdict": "passed"}, Options("h", 1), named)
    assert len(result.conversation) == count


@pytest.mark.parametrize(
    ("is_strict", "verdict"), [(False, Verdict.NOT_APPLICABLE), (True, Verdict.FAILED)]
)
def test_what_is_ignored_fails_where_jms_is_strict(is_strict: bool, verdict: Verdict) -> None:
    line = {**LINE, "verdict": "not applicable", "kind": "IGNORED", "reason": "no order"}
    result = result_of(RULE, line, Options("h", 1, strict_jms=is_strict))
    assert result.verdict is verdict
    assert "no order" in result.got + result.reason


URLS = [
    pytest.param("amqp://h", "amqp://h:5672", id="AMQP"),
    pytest.param("amqp://[::1]:7", "amqp://[::1]:7", id="an address of IPv6"),
    pytest.param("amqps://h", "amqps://h:5671", id="TLS"),
    pytest.param("ws://h/amqp", "amqpws://h:5673/amqp", id="WebSocket"),
    pytest.param("wss://h:7", "amqpwss://h:7/", id="WebSocket within TLS"),
]


@pytest.mark.parametrize(("typed", "url"), URLS)
def test_the_url_is_written_as_qpid_jms_does(typed: str, url: str) -> None:
    assert variables(options_of(Asked(typed)), JmsRun())["JMS_API_URL"] == url


def test_options_reach_the_suite() -> None:
    options = options_of(
        Asked("amqp://a:b@h", timeout=0.5, address_template=["topic=amq.topic/{name}"])
    )
    told = variables(options, JmsRun(cert=Path("own.pem")))
    assert (told["JMS_API_USER"], told["JMS_API_PASSWORD"]) == ("a", "b")
    assert (told["JMS_API_TOPIC"], told["JMS_API_QUEUE"]) == ("amq.topic/{name}", "{name}")
    assert (told["JMS_API_TIMEOUT_MS"], told["JMS_API_LIMIT_MS"]) == ("500", "5500")
    assert (told["JMS_API_CERT"], told["JMS_API_KEY"]) == ("own.pem", "own.pem")
    assert told["JMS_API_MISSING"] == ""


# ---- machines without what it needs -----------------------------------------------------


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of programs, with none at first; what is built goes beside it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def put(folder: Path, name: str, script: str) -> None:
    """Make a program of a shell script."""
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@pytest.mark.usefixtures("tools")
def test_without_java_nothing_is_run() -> None:
    with pytest.raises(CannotRun, match="no program java on the PATH"):
        java_command(None)


def test_without_maven_a_class_path_is_asked_for(tools: Path) -> None:
    put(tools, "java", "exit 0")
    put(tools, "javac", '/bin/mkdir "${8}"')
    with pytest.raises(CannotRun, match=r"--jms-class-path.*no program mvn"):
        java_command(None)
    assert "client/*" in " ".join(java_command("client/*"))


def test_a_failed_build_is_told_with_its_output(tools: Path) -> None:
    put(tools, "java", "exit 0")
    put(tools, "javac", "echo cannot find symbol; exit 1")
    with pytest.raises(CannotRun, match="javac ended with status 1:\ncannot find symbol"):
        java_command("client/*")


def test_what_is_built_is_used_again(tools: Path, tmp_path: Path) -> None:
    put(tools, "java", "exit 0")
    put(tools, "javac", f'echo compiled >> {tmp_path}/calls; /bin/mkdir "${{8}}"')
    put(tools, "mvn", f'echo fetched >> {tmp_path}/calls; echo {tools}/java > "${{6#*=}}"')
    assert java_command(None) == java_command(None)
    assert (tmp_path / "calls").read_text() == "fetched\ncompiled\n"


def test_another_process_may_have_built_the_same_meanwhile(tools: Path) -> None:
    put(tools, "java", "exit 0")
    put(tools, "javac", '/bin/mkdir "${8}" classes && > "${8}/Main.class" && > classes/Main.class')
    assert "jmsapi.Main" in java_command("client/*")


def test_what_is_built_is_the_users_alone(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A JVM runs it: a folder that another user owns is refused."""
    put(tools, "java", "exit 0")
    put(tools, "javac", '/bin/mkdir "${8}"')
    java_command("client/*")
    (place,) = (tools.parent / "cache" / "amqp-conformance").iterdir()
    assert (place.stat().st_mode & 0o777, place.parent.stat().st_mode & 0o777) == (0o700, 0o700)
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    with pytest.raises(CannotRun, match="amqp-conformance belongs to another user"):
        java_command("client/*")


def test_a_relative_folder_of_caches_is_ignored(
    tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tools, "java", "exit 0")
    put(tools, "javac", '/bin/mkdir "${8}"')
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    monkeypatch.setenv("HOME", str(tools.parent))
    monkeypatch.chdir(tools)
    assert f"{tools.parent}/.cache/amqp-conformance/jms-api-" in " ".join(java_command("client/*"))


def test_without_a_home_nothing_is_run(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(_: int) -> None:
        raise KeyError

    put(tools, "java", "exit 0")
    put(tools, "javac", "exit 0")
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    with pytest.raises(CannotRun, match=r"cannot be built: .*/dev/null"):
        java_command("client/*")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", nobody)
    with pytest.raises(CannotRun, match="set XDG_CACHE_HOME"):
        java_command("client/*")


def test_a_jvm_that_ends_early_fails_the_rest(tools: Path, open_broker: BrokerProcess) -> None:
    """Its output is told for each rule of which it said nothing."""
    put(tools, "javac", '/bin/mkdir "${8}"')
    put(tools, "java", "echo 'Error: no memory' >&2; exit 1")
    rules = rules_of("unselected_messages_stay", "queue_holds_messages")
    options = options_of(Asked(open_broker.url))
    found = asyncio.run(judge_jms(rules, options, JmsRun(java_command("client/*"))))
    assert [result.case.name for result in found] == [rule.name for rule in rules]
    for result in found:
        assert result.verdict is Verdict.FAILED
        assert "no memory" in result.got


TOLD = json.dumps({**LINE, "verdict": "passed"})

BAD_LINES = [
    pytest.param('echo "{no JSON"', "is no result of a rule: JSONDecodeError", id="no JSON"),
    pytest.param("""echo '{"name": "x"}'""", "of a rule: KeyError('x')", id="an unknown name"),
    pytest.param(f"echo '{TOLD}'", "KeyError('unselectedMessagesStay')", id="a name again"),
    pytest.param(
        """echo '{"name": "queueHoldsMessages"}'""", "KeyError('verdict')", id="half a result"
    ),
    pytest.param(
        f"/usr/bin/head -c {2**20 + 99} /dev/zero; exec /bin/sleep 60",
        "a line of more than 1048576 bytes",
        id="a long line",
    ),
    pytest.param(
        "echo 'no heap' >&2; exec /bin/sleep 60", "told nothing for 2 s: no heap", id="silence"
    ),
]


@pytest.mark.parametrize(("script", "told"), BAD_LINES)
def test_a_jvm_that_tells_no_result_fails_the_rest(
    tools: Path,
    open_broker: BrokerProcess,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    told: str,
) -> None:
    """Keep the results that it told before, and go on with the run."""
    monkeypatch.setattr(runner, "EXTRA_S", 0.1)
    monkeypatch.setattr(runner, "MORE_S", 1.7)
    put(tools, "javac", '/bin/mkdir "${8}"')
    put(tools, "java", f"echo '{TOLD}'\n{script}")
    rules = rules_of("unselected_messages_stay", "queue_holds_messages")
    options = options_of(Asked(open_broker.url, timeout=0.2))
    first, second = asyncio.run(judge_jms(rules, options, JmsRun(java_command("client/*"))))
    assert first.verdict is Verdict.PASSED
    assert (second.verdict, second.expected) == (Verdict.FAILED, "a suite that runs")
    assert told in second.got


def test_a_dead_broker_ends_the_run(
    tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first failure is of the rule in which it died, and the others are not run."""
    monkeypatch.setattr(running, "BACK_S", 0.2)
    broker = BrokerProcess(tmp_path)
    put(tools, "javac", '/bin/mkdir "${8}"')
    put(tools, "java", f"kill -9 {broker.pid}; exit 1")
    rules = rules_of("unselected_messages_stay", "queue_holds_messages")
    suite = JmsRun(java_command("client/*"))
    found = asyncio.run(judge_jms(rules, options_of(Asked(broker.url, timeout=0.5)), suite))
    assert [result.verdict for result in found] == [Verdict.FAILED, Verdict.NOT_RUN]
    assert found[0].died
    broker.wait()


def test_the_environment_of_the_user_does_not_reach_the_suite(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("JMS_API_USER", "somebody")
    assert (os.environ | variables(Options("h", 1), JmsRun()))["JMS_API_USER"] == ""
