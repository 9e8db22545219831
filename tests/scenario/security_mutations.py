"""Deliberate bugs in what keeps clients apart, each of which a named file of tests must find.

    make mutations

Each bug is put into a copy of the sources, in which the tests of that file run, interpreted and in
a process of their own. The same tests must pass in a copy without a bug.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.scenario.mutations import Mutation, copy_to, mutated

TIMEOUT_S: Final = 300
COPIED: Final = (
    *("broker", "storage", "jms_broker.py", "jms_broker_pytest.py", "pyproject.toml"),
    *("tests/__init__.py", "tests/conftest.py", "tests/requirement_ids.txt"),
    *("tests/conformance", "tests/faults", "tests/interop", "tests/scenario", "tests/support"),
    "tests/unit",
)

MATRIX: Final = "tests/scenario/test_access_matrix.py"
OWNERS: Final = "tests/unit/links/test_container_owners.py"
OWNERSHIP: Final = "tests/unit/links/test_access_ownership.py"
TLS: Final = "tests/unit/net/test_tls.py"
LOGINS: Final = "tests/unit/net/test_login_exchange.py"


@dataclass(frozen=True)
class Control:
    """A bug, and the file of tests that must find it, or `FILE::TEST` for one of its tests."""

    mutation: Mutation
    tests: str

    @property
    def file(self) -> str:
        """Return the path of the file."""
        return self.tests.partition("::")[0]


CONTROLS: Final = (
    Control(
        Mutation(
            "deny rules on queues and topics are ignored",
            "broker/security/access.py",
            "index.touching(asked, visits):\n                if request.is_usable_to_deny(entry):",
            "index.touching(asked, visits):\n                if False:",
        ),
        MATRIX,
    ),
    Control(
        Mutation(
            "messages to the anonymous relay are not checked",
            "broker/links/incoming.py",
            "self._peer.relay_rights.demand(self._peer, address, kind)",
            "pass",
        ),
        MATRIX,
    ),
    Control(
        Mutation(
            "the user of a container-id is not compared",
            "broker/links/container.py",
            "is_of_another = any(holder.identity.user != user for holder in holders)",
            "is_of_another = False",
        ),
        OWNERS,
    ),
    Control(
        Mutation(
            "the owner of a subscription is not compared",
            "broker/links/access.py",
            "if identity is None or identity[0] is None or subscription.owner == user:",
            "if identity is None or identity[0] is None or subscription.owner:",
        ),
        OWNERSHIP,
    ),
    Control(
        Mutation(
            "the front context of TLS has no verify mode",
            "broker/net/tls.py",
            "_apply_rules(front, settings)",
            "_apply_rules(front, settings); front.verify_mode = ssl.CERT_NONE",
        ),
        TLS,
    ),
    Control(
        Mutation(
            "a front context without its verify mode is not noticed",
            "broker/net/tls.py",
            "if front.verify_mode != VERIFY_MODES[published.settings.client_certificates]:",
            "if False:",
        ),
        TLS,
    ),
    Control(
        Mutation(
            "failed logins are not throttled",
            "broker/net/login.py",
            "return self.throttle.allowed_at(source, user, now_ms) > now_ms",
            "return False",
        ),
        LOGINS,
    ),
)


def failure_of(tests: str, mutation: Mutation | None) -> str | None:
    """Return the first failed test of a file in a copy with `mutation`; None if all tests pass.

    Raise RuntimeError if the tests could not run, or took more than TIMEOUT_S.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_to(folder, COPIED)
        if mutation is not None:
            file = folder / mutation.path
            file.write_text(mutated(mutation, file.read_text()))
        options = ["-q", "--exitfirst", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist"]
        command = [sys.executable, "-m", "pytest", *options, tests]
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    if done.returncode == 0:
        return None
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED ")]
    if done.returncode != 1 or not failed:
        raise RuntimeError(f"the tests did not run:\n{done.stdout}{done.stderr}")
    return failed[0].removeprefix("FAILED ")


def check(controls: Sequence[Control]) -> int:
    """Print a line for each bug; return 0 if all are found and unchanged sources pass, else 1."""
    missed = 0
    for each in controls:
        began = time.monotonic()
        failed = failure_of(each.tests, each.mutation)
        missed += failed is None
        seconds = time.monotonic() - began
        verdict = "MISSED" if failed is None else "found"
        print(f"{verdict} in {seconds:4.1f} s: {each.mutation.name}\n    {failed}", flush=True)
    for tests in dict.fromkeys(each.tests for each in controls):
        failed = failure_of(tests, None)
        missed += failed is not None
        print(f"without a bug: {tests}: {failed or 'all pass'}", flush=True)
    print(f"{len(controls)} bugs, {missed or 'none'} missed or found where there is none")
    return 0 if missed == 0 else 1


if __name__ == "__main__":
    sys.exit(check(CONTROLS))
