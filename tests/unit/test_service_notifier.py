"""Messages to a service manager, at a file or an abstract name."""

from __future__ import annotations

import io
import json
import os
import socket
from pathlib import Path

import pytest

from broker.log_lines import configure_logging
from broker.service_notifier import ServiceNotifier

pytestmark = pytest.mark.requirement("OPS-16")


@pytest.mark.parametrize("is_abstract", [False, True], ids=["a file", "an abstract name"])
def test_the_state_is_told(tmp_path: Path, is_abstract: bool) -> None:
    name = f"@jms-broker-test-{os.getpid()}" if is_abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.settimeout(10)
        manager.bind(name.replace("@", "\0", 1) if is_abstract else name)
        teller = ServiceNotifier({"NOTIFY_SOCKET": name})
        teller.ready("serving")
        assert manager.recv(100) == b"READY=1\nSTATUS=serving"
        teller.stopping("bye")
        assert manager.recv(100) == b"STOPPING=1\nSTATUS=bye"


def test_without_a_manager_nothing_is_told() -> None:
    lines = io.StringIO()
    configure_logging("json", "info", lines)
    ServiceNotifier({}).ready("serving")
    assert lines.getvalue() == ""


def test_a_manager_that_is_not_there_is_logged(tmp_path: Path) -> None:
    lines = io.StringIO()
    configure_logging("json", "info", lines)
    ServiceNotifier({"NOTIFY_SOCKET": str(tmp_path / "none")}).ready("serving")
    line = json.loads(lines.getvalue())
    assert (line["event"], line["message"]) == ("the service manager was not told", "READY=1")
