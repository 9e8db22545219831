"""Rules for the whole tree: caps, names, one test module for each module that decides.

Each rule is first shown code that breaks it: a rule that finds nothing would always pass.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

import pytest

from broker.address_settings import AddressSettings, NodeSettings
from broker.cli.application import COMMANDS
from broker.http_settings import HttpSettings
from broker.log_settings import LogSettings
from broker.settings import Settings
from tests.support import tidy
from tests.support.tidy import ROOT, Rule, Source

PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())
WHEEL: Final = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
COMPILED: Final[list[str]] = WHEEL["hooks"]["mypyc"]["include"]

PRODUCT: Final = [
    Source.read(file)
    for pattern in ("broker/**/*.py", "storage/**/*.py", "jms_broker*.py")
    for file in sorted(ROOT.glob(pattern))
]
PIPELINE: Final = [Source.read(file) for file in sorted((ROOT / "pyspark_amqp").rglob("*.py"))]
TESTS: Final = [Source.read(file) for file in sorted((ROOT / "tests").rglob("*.py"))]
EVERYTHING: Final = [*PRODUCT, *PIPELINE, *TESTS]
ENUMS: Final[set[str]] = set().union(*(tidy.enums_in(source) for source in PRODUCT))


def compiled(source: Source) -> bool:
    return any(
        f"/{source.path}" == pattern or f"/{source.path}".startswith(f"{pattern}/")
        for pattern in COMPILED
    )


COMPILED_SOURCES: Final = [source for source in [*PRODUCT, *PIPELINE] if compiled(source)]

RULES: Final[list[tuple[Rule, list[Source]]]] = [
    (tidy.file_is_short, EVERYTHING),
    (tidy.functions_are_short, [*PRODUCT, *PIPELINE]),
    (tidy.parameters_are_few_or_named, [*PRODUCT, *PIPELINE]),
    (tidy.nesting_is_shallow, [*PRODUCT, *PIPELINE]),
    (tidy.nothing_is_any, COMPILED_SOURCES),
    (tidy.nothing_derives_from_abc, COMPILED_SOURCES),
    (tidy.nothing_reflects, COMPILED_SOURCES),
    (tidy.globals_do_not_change, [*PRODUCT, *PIPELINE]),
    (tidy.enums_have_one_name(ENUMS), PRODUCT),
    (tidy.what_is_left_to_do_has_an_issue, EVERYTHING),
    (tidy.names_say_something, [*PRODUCT, *PIPELINE]),
    (tidy.module_says_what_it_is_for, EVERYTHING),
    (tidy.docstrings_say_what_they_are_of, EVERYTHING),
    (tidy.comments_say_what_they_are_of, EVERYTHING),
    (tidy.nothing_is_mocked, TESTS),
    (tidy.nothing_sleeps, TESTS),
]

MAY: Final = {
    # rule: files that it excepts, and why
    "functions_are_short": {
        "broker/amqp/encode.py": "a ladder by type, ordered by frequency",
        "broker/amqp/decode.py": "a ladder by type, ordered by frequency",
    },
    "parameters_are_few_or_named": {
        "broker/cli/*.py": "typer makes options of the parameters of commands",
        "pyspark_amqp/*.py": "typer's commands, and Spark's own signatures",
    },
    "what_is_left_to_do_has_an_issue": {
        "tests/support/tidy.py": "the rule itself",
        "tests/test_tidy.py": "its example",
    },
    "nothing_is_mocked": {
        "tests/support/tidy.py": "the rule itself",
        "tests/unit/http/*.py": "applications of others are replaced there",
    },
    "nothing_sleeps": {
        "tests/conformance/logins.py": "brokers delay the logins after failed ones",
        "tests/attacks/*.py": "an attack lasts, and real timers of a real broker run meanwhile",
        "tests/bench/*.py": "a benchmark lets the machine calm down, and looks on while it works",
        "tests/spark/churn.py": "a broker is killed at random times, while clients work",
        "tests/faults/*.py": "faults fall at random times, and real timers of real processes run",
    },
}


def complaints(rule: Rule, sources: list[Source], name: str) -> Iterator[str]:
    """Yield the complaints of a rule about all files that it does not except."""
    allowed = MAY.get(name, {})
    for source in sources:
        if not any(fnmatch(source.path, pattern) for pattern in allowed):
            yield from (f"{source.path}:{complaint}" for complaint in rule(source))


def none_of(found: Iterable[str]) -> None:
    """Fail with a line for each of `found`."""
    lines = sorted(found)
    if lines:
        pytest.fail("\n".join(lines), pytrace=False)


def name_of(rule: Rule) -> str:
    return "enums_have_one_name" if rule.__name__ == "rule" else rule.__name__


@pytest.mark.parametrize(("rule", "sources"), RULES, ids=[name_of(rule) for rule, _ in RULES])
def test_rule(rule: Rule, sources: list[Source]) -> None:
    none_of(complaints(rule, sources, name_of(rule)))


def test_everything_that_is_allowed_is_still_there() -> None:
    paths = [source.path for source in EVERYTHING]
    for rule, allowed in MAY.items():
        for pattern in allowed:
            if pattern != "tests/unit/http/*.py":
                assert any(fnmatch(path, pattern) for path in paths), (rule, pattern)


EXAMPLES: Final = [
    pytest.param(tidy.file_is_short, "x = 1\n" * 501, id="a long file"),
    pytest.param(tidy.functions_are_short, "def f():\n" + "    f()\n" * 50, id="a long function"),
    pytest.param(tidy.parameters_are_few_or_named, "def f(a, b, c, d): ...", id="parameters"),
    pytest.param(
        tidy.nesting_is_shallow,
        "def f():\n if a:\n  for b in c:\n   with d:\n    if e: ...",
        id="deep nesting",
    ),
    pytest.param(
        tidy.nesting_is_shallow,
        "def f():\n if a: ...\n elif b:\n  for c in d:\n   if e:\n    if f: ...",
        id="deep nesting behind elif",
    ),
    pytest.param(tidy.nothing_is_any, "x: typing.Any", id="Any"),
    pytest.param(tidy.nothing_derives_from_abc, "class Node(abc.ABC): ...", id="abc.ABC"),
    pytest.param(tidy.nothing_derives_from_abc, "from abc import ABCMeta", id="ABCMeta"),
    pytest.param(tidy.nothing_reflects, "getattr(a, b)", id="getattr"),
    pytest.param(tidy.globals_do_not_change, "CACHE = {}", id="a dict for all"),
    pytest.param(tidy.globals_do_not_change, "cache: list[int] = list()", id="a list for all"),
    pytest.param(tidy.globals_do_not_change, "def f():\n global x", id="global"),
    pytest.param(tidy.enums_have_one_name({"State"}), "S = State", id="an alias"),
    pytest.param(
        tidy.enums_have_one_name({"State"}), "from a import State as S", id="an imported alias"
    ),
    pytest.param(tidy.what_is_left_to_do_has_an_issue, "# TODO later", id="a bare TODO"),
    pytest.param(tidy.names_say_something, "class QueueManager: ...", id="a manager"),
    pytest.param(tidy.module_says_what_it_is_for, "x = 1", id="no docstring"),
    pytest.param(
        tidy.docstrings_say_what_they_are_of, 'def f():\n    """What waits."""', id="an opener"
    ),
    pytest.param(tidy.comments_say_what_they_are_of, "x = 1\n# what waits", id="a comment"),
    pytest.param(tidy.nothing_is_mocked, "from unittest.mock import Mock", id="a mock"),
    pytest.param(tidy.nothing_sleeps, "time.sleep(1)", id="a sleep"),
]


@pytest.mark.parametrize(("rule", "text"), EXAMPLES)
def test_a_rule_catches(rule: Rule, text: str) -> None:
    assert list(rule(Source("broker/example.py", text)))


FINE: Final = [
    pytest.param(tidy.parameters_are_few_or_named, "def f(self, a, b, c, *, d): ...", id="named"),
    pytest.param(tidy.parameters_are_few_or_named, "def f(data, at, end, x, y): ...", id="reader"),
    pytest.param(
        tidy.nesting_is_shallow,
        "def f():\n for a in b:\n  if c: ...\n  elif d: ...\n  elif e:\n   if f: ...",
        id="a ladder is one level",
    ),
    pytest.param(tidy.globals_do_not_change, "TABLE: Final[dict[int, int]] = {}", id="a Final"),
    pytest.param(tidy.what_is_left_to_do_has_an_issue, "# TODO(#4): this", id="with an issue"),
    pytest.param(tidy.nothing_sleeps, "asyncio.sleep(0)", id="giving way"),
    pytest.param(
        tidy.docstrings_say_what_they_are_of,
        'def f():\n    """Return the ready messages."""',
        id="a verb",
    ),
    pytest.param(
        tidy.comments_say_what_they_are_of,
        "# the messages\n# that wait\nx = 1  # what waits",
        id="a second line, and a comment behind code",
    ),
]


@pytest.mark.parametrize(("rule", "text"), FINE)
def test_a_rule_lets_pass(rule: Rule, text: str) -> None:
    assert list(rule(Source("broker/example.py", text))) == []


def test_a_module_may_not_be_called_utils() -> None:
    assert list(tidy.names_say_something(Source("broker/utils.py", "")))


def test_a_class_name_is_defined_once_in_a_package() -> None:
    twice = [Source(f"broker/{name}.py", "class Page: ...") for name in ("a", "b")]
    assert list(tidy.classes_defined_twice(twice)) == ["Page: broker/a.py, broker/b.py"]
    elsewhere = Source("storage/c.py", "class Page: ...")
    assert list(tidy.classes_defined_twice([twice[0], elsewhere])) == []
    none_of(tidy.classes_defined_twice([*PRODUCT, *PIPELINE]))


DOCUMENTS: Final = [
    file
    for folder in ("", "broker/**/", "storage/**/", "pyspark_amqp/**/", "tests/**/", "docs/**/")
    for file in sorted(ROOT.glob(f"{folder}*.md"))
    if "node_modules" not in file.parts
]


def test_lines_of_documents_are_short() -> None:
    wide = "x" * 121
    assert list(tidy.wide_lines(f"{wide}\n| {wide} |\n```\n{wide}\n```\nx")) == [
        "1: 121 characters, 120 at most"
    ]
    assert ROOT / "README.md" in DOCUMENTS
    none_of(
        f"{file.relative_to(ROOT)}:{line}"
        for file in DOCUMENTS
        for line in tidy.wide_lines(file.read_text())
    )


# ---- the tree as a whole --------------------------------------------------------------------

NO_TEST_OF_ITS_OWN: Final = {
    "broker/__main__.py": "one call",
    "broker/amqp/delivery.py": "a record",
    "broker/amqp/events.py": "what a connection tells its owner, declared",
    "broker/amqp/sasl_frames.py": "tests/wire",
    "broker/jms/errors.py": "a class",
    "broker/jms/profile.py": "two names",
    "broker/routing/entries/participants.py": "what a node may do to a link, declared",
    "broker/links/authenticator.py": "what a login does, declared",
    "broker/links/transport.py": "what a peer does to its socket, declared",
    "broker/links/watcher.py": "what an operator is told, declared",
    "broker/security/entrance.py": "a record",
    "broker/security/scramp_parts.py": "calls of scramp; tests/unit/security/test_scram.py",
    "broker/security/package_authenticator.py": "what a package does, declared",
    "broker/cli/application.py": "the table of commands; tests/interop/test_command_line.py",
    "broker/cli/conformance.py": "tests/conformance/test_command.py",
    "broker/cli/client.py": "tests/interop/test_command_line.py",
    "broker/cli/connections.py": "tests/interop/test_command_line_management.py",
    "broker/cli/entities.py": "tests/interop/test_command_line_management.py",
    "broker/cli/managing.py": "tests/interop/test_command_line_management.py",
    "broker/cli/subscriptions.py": "tests/interop/test_command_line_management.py",
    "broker/cli/bridges.py": "tests/interop/test_command_line_bridges.py",
    "broker/cli/sinks.py": "tests/interop/test_command_line_sinks.py",
    "broker/cli/queued.py": "tests/interop/test_command_line_management.py",
    "broker/cli/tokens.py": "tests/interop/test_command_line_http.py",
    "broker/cli/leases.py": "tests/interop/test_command_line_leases.py",
    "broker/cli/suspended_links.py": "tests/interop/test_command_line_suspended_links.py",
    "broker/cli/wire.py": "tests/unit/cli/test_healthcheck.py",
    "broker/cli/nodes.py": "tests/interop/test_command_line_management.py",
    "broker/cli/messages.py": "tests/interop/test_command_line.py",
    "storage/sql/migrations/env.py": "what alembic runs; tests/unit/storage/sql/test_schema.py",
    "storage/sql/migrations/versions/v0001_queues_and_messages.py": "the same",
    "storage/sql/migrations/versions/v0002_quarantine.py": "the same",
    "storage/sql/migrations/versions/v0003_remembered_ids.py": "the same",
    "storage/sql/migrations/versions/v0004_large_messages.py": "the same",
    "storage/sql/migrations/versions/v0005_delivered.py": "the same",
    "storage/sql/migrations/versions/v0006_events.py": "the same",
    "storage/sql/migrations/versions/v0007_segments.py": "the same",
    "storage/sql/migrations/versions/v0009_stages.py": "the same",
    "storage/sql/migrations/versions/v0017_unsettled.py": "the same",
    "storage/sql/migrations/versions/v0018_lease_terminus.py": "the same",
    "storage/sql/migrations/versions/v0019_auto_created.py": "the same",
    "storage/sql/migrations/versions/v0008_leases.py": "the same",
    "storage/sql/migrations/versions/v0010_labels.py": "the same",
    "storage/sql/migrations/versions/v0011_subscription_owner.py": "the same",
    "storage/sql/migrations/versions/v0012_node_creator.py": "the same",
    "storage/sql/migrations/versions/v0013_users.py": "the same",
    "storage/sql/migrations/versions/v0014_api_tokens.py": "the same",
    "storage/sql/migrations/versions/v0015_commits_epoch.py": "the same",
    "broker/http/leader_answers.py": "tests/unit/test_leading.py",
    "storage/sql/transaction.py": "tests/unit/storage/sql/test_schema.py",
    "storage/steady_clock.py": "the machine's clock",
    "broker/standing_by.py": "tests/faults/test_failover.py",
    "storage/members.py": "a record",
    "storage/sql/migrations/versions/v0016_members.py": "tests/unit/storage/sql/test_schema.py",
    "storage/sql/postgresql/epoch.py": "tests/unit/storage/sql/postgresql/test_store.py",
    "storage/sql/postgresql/lock.py": "tests/unit/storage/sql/postgresql/test_session.py",
    "storage/sql/tables.py": "the same",
    "broker/cli/answering_broker.py": "tests/unit/doctor/test_checks.py",
    "broker/cli/doctor.py": "tests/interop/test_command_line_doctor.py",
    "broker/cli/named_brokers.py": "tests/unit/cli/test_context.py",
    "broker/management/definition.py": "tests/unit/management/test_definitions.py",
    "broker/management/node_definitions.py": "tests/unit/management/test_definitions.py",
    "broker/doctor/access_checks.py": "tests/unit/doctor/test_checks.py",
    "broker/doctor/checked_broker.py": "tests/interop/test_command_line_doctor.py",
    "broker/doctor/file_checks.py": "tests/unit/doctor/test_checks.py",
    "broker/doctor/finding.py": "tests/unit/doctor/test_checks.py",
    "broker/doctor/machine_checks.py": "tests/unit/doctor/test_checks.py",
    "broker/doctor/queue_checks.py": "tests/unit/doctor/test_checks.py",
    "broker/doctor/tls_checks.py": "tests/unit/doctor/test_checks.py",
    "storage/facts.py": "records",
    "broker/cli/accounts.py": "tests/unit/cli/test_users.py, and with a broker in tests/interop",
    "broker/cli/backup.py": "tests/interop/test_command_line_store.py",
    "broker/cli/reload.py": "tests/interop/test_command_line_audit.py",
    "broker/cli/drain.py": "tests/interop/test_qpid_proton_drain.py",
    "broker/cli/log_level.py": "tests/interop/test_command_line_audit.py",
    "broker/cli/cluster.py": "tests/faults/test_switch.py",
    "storage/sql/postgresql/heir.py": "tests/unit/storage/sql/postgresql/test_leadership.py",
    "broker/cli/logins.py": "tests/interop/test_command_line_users.py",
    "broker/cli/transactions.py": "tests/interop/test_command_line_transactions.py",
    "broker/cli/top.py": "tests/interop/test_command_line_top.py",
    "broker/cli/load/command.py": "tests/interop/test_command_line_load.py",
    "broker/cli/load/connection.py": "tests/interop/test_command_line_load.py",
    "broker/cli/load/links.py": "tests/interop/test_command_line_load.py",
    "broker/cli/load/outcomes.py": "tests/interop/test_command_line_load.py",
    "broker/cli/load/run.py": "tests/interop/test_command_line_load.py",
    "broker/cli/load/worker.py": "tests/interop/test_command_line_load.py",
    "broker/drain_settings.py": "types; tests/unit/test_settings.py",
    "broker/audit_settings.py": "types; tests/unit/test_settings.py",
    "broker/http_settings.py": "types; tests/unit/test_settings.py",
    "broker/http/mounts.py": "a list; tests/unit/http/test_application_documented.py",
    "broker/http/readings.py": "tests/unit/http/test_application.py, over a socket",
    "broker/http/site.py": "a record; tests/unit/http/test_application.py",
    "broker/http/api/endpoint.py": "records; tests/unit/http/api/test_table.py",
    "broker/http/api/kinds.py": "a list; tests/unit/http/api/test_entities.py",
    "broker/management/durable.py": "one event; tests/unit/management/test_executor.py",
    "broker/http/limits.py": "numbers; tests/unit/amqp/test_limits.py",
    "broker/websocket/limits.py": "numbers; tests/unit/websocket, tests/unit/net",
    "broker/listener_settings.py": "types; tests/unit/test_settings.py",
    "broker/setting_types.py": "types; tests/unit/test_settings.py",
    "broker/log_settings.py": "types; tests/unit/test_settings.py",
    "broker/links/redirect.py": "tests/unit/links/test_shard_hosts.py",
    "broker/bridge/bridges.py": "tests/unit/bridge/test_bridge.py",
    "broker/bridge/client_frames.py": "tests/unit/bridge/test_client_connection.py",
    "broker/bridge/client_links.py": "tests/unit/bridge/test_client_connection.py",
    "broker/bridge/failure.py": "two classes",
    "broker/bridge/large_sending.py": "tests/unit/bridge/test_bridge.py",
    "broker/bridge/leased_source.py": "tests/unit/bridge/test_bridge.py",
    "broker/bridge/moving_batch.py": "tests/unit/bridge/test_bridge.py",
    "broker/links/bridge_status.py": "a record; tests/unit/bridge/test_bridge.py",
    "broker/restore.py": "what calls what; tests/unit/links/test_recovery.py, tests/scenario",
    "storage/api.py": "ABCs; tests/contract holds the fillings to them",
}


def own_test(source: Source) -> Path:
    """Return the path of a module's test: broker/amqp/decode.py has tests/unit/amqp/test_decode.py.

    The folder `storage` keeps its name.
    """
    path = Path(source.path.removeprefix("broker/"))
    return ROOT / "tests" / "unit" / path.parent / f"test_{path.name}"


def test_every_module_that_decides_has_a_test_of_its_own() -> None:
    missing = [
        source.path
        for source in PRODUCT
        if not source.path.endswith("__init__.py")
        and source.path not in NO_TEST_OF_ITS_OWN
        and not own_test(source).exists()
    ]
    none_of(missing)


def test_what_needs_no_test_of_its_own_exists_and_has_none() -> None:
    by_path = {source.path: source for source in PRODUCT}
    assert set(NO_TEST_OF_ITS_OWN) <= set(by_path)
    none_of(path for path in NO_TEST_OF_ITS_OWN if own_test(by_path[path]).exists())


def is_of_a_module(path: Path, of_modules: set[Path]) -> bool:
    """Return whether `path` is a module's own test, or a test_<module>_<aspect>.py beside it."""
    words = path.stem.split("_")
    names = ["_".join(words[: count + 1]) for count in range(1, len(words))]
    return any(path.with_stem(name) in of_modules for name in names)


def test_every_unit_test_is_of_a_module() -> None:
    of_modules = {own_test(source) for source in [*PRODUCT, *PIPELINE]}
    strays = [
        source.path
        for source in TESTS
        if source.path.startswith("tests/unit/")
        and Path(source.path).name.startswith("test_")
        and not is_of_a_module(ROOT / source.path, of_modules)
    ]
    none_of(strays)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("amqp/test_incoming_link.py", True, id="a module's own"),
        pytest.param("amqp/test_incoming_link_limits.py", True, id="one aspect of a module"),
        pytest.param("amqp/test_incoming.py", False, id="half a module's name"),
        pytest.param("amqp/test_queue_order.py", False, id="a module of another package"),
        pytest.param("amqp/test_.py", False, id="no name"),
    ],
)
def test_a_unit_test_is_named_after_its_module(name: str, expected: bool) -> None:
    unit = ROOT / "tests" / "unit"
    of_modules = {unit / "amqp" / "test_incoming_link.py", unit / "routing" / "test_queue.py"}
    assert is_of_a_module(unit / name, of_modules) is expected


def test_every_module_is_used() -> None:
    """A module without importers is dead code; pytest imports plugins, alembic its scripts."""
    plugins: dict[str, str] = PROJECT["project"]["entry-points"]["pytest11"]
    commands = {each.partition(":")[0] for each in PROJECT["project"]["scripts"].values()}
    commands |= {each.place.partition(":")[0] for each in COMMANDS.values()}
    used = commands.union(plugins.values()).union(
        *(tidy.imported_modules(source) for source in PRODUCT)
    )
    unused = [
        source.path
        for source in PRODUCT
        if source.name not in used
        and not source.path.endswith("__init__.py")
        and source.path != "broker/__main__.py"
        and not source.path.startswith("storage/sql/migrations/")
    ]
    none_of(unused)


def test_every_setting_is_read() -> None:
    readers = "\n".join(source.text for source in PRODUCT if source.path != "broker/settings.py")
    own = next(source.text for source in PRODUCT if source.path == "broker/settings.py")
    classes = (Settings, HttpSettings, LogSettings, AddressSettings, NodeSettings)
    names = {name for each in classes for name in each.model_fields}
    # the first user's three settings are read by the rule that connects them, in settings.py
    unread = [name for name in names if f".{name}" not in readers and f"self.{name}" not in own]
    none_of(unread)


def test_every_compiled_path_exists_or_is_announced() -> None:
    announced = {"/broker/jms"}
    missing = {path for path in COMPILED if not (ROOT / path.removeprefix("/")).exists()}
    assert missing <= announced


TEXTS: Final = [
    *("Makefile", ".ci/run", ".gitignore", "*.md", "*.txt", "*.toml", "config/**/*"),
    *(f"tests/interop/*/{name}" for name in ("*.json", ".npmrc", "go.*", "*.txt", "*.js")),
]
HERE_ONLY: Final = (
    "/work/",
    "/root/",
    "://pypi.",
    "://files.pythonhosted.",
    "://repo.",
    "://registry.",
)


def test_no_file_names_this_machine_or_a_download_address() -> None:
    found_files = (file for pattern in TEXTS for file in ROOT.glob(pattern))
    # folders, and the bytecode of the modules in `config`, have no text
    files = [file for file in found_files if file.is_file() and file.suffix != ".pyc"]
    files += [ROOT / source.path for source in EVERYTHING if source.path != "tests/test_tidy.py"]
    found = [
        f"{file.relative_to(ROOT)}: {place}"
        for file in files
        for place in HERE_ONLY
        if place in file.read_text()
    ]
    none_of(found)
