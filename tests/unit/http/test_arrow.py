"""pyarrow and the HTTP server: imported for the first stream; without it, streams are missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ASK = """
import sys
sys.modules['pyarrow'] = None  # as if it were not installed
import asyncio, json, urllib.error, urllib.request
from broker.app import App
from broker.settings import MEMORY, Settings

def ask(url):
    try:
        with urllib.request.urlopen(url, timeout=10) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()

async def main():
    app = App(Settings(port=0, store=MEMORY, http={'port': 0}))
    await app.start()
    paths = ['/livez', '/events/bounds', '/arrow/browse?address=q', '/arrow/events', '/arrow/x']
    told = {path: await asyncio.to_thread(ask, app.http.url() + path) for path in paths}
    await app.stop()
    print(json.dumps(told))

asyncio.run(main())
"""


def told_by(program: str, folder: Path) -> Any:
    """Run a program with this Python, and return the JSON that it prints."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.requirement("OPS-16")
def test_without_pyarrow_only_streams_are_missing(tmp_path: Path) -> None:
    told = told_by(ASK, tmp_path)
    assert {path: status for path, (status, _) in told.items()} == {
        "/livez": 200,
        "/events/bounds": 200,
        "/arrow/browse?address=q": 501,
        "/arrow/events": 501,
        "/arrow/x": 404,
    }
    assert json.loads(told["/arrow/events"][1]) == {
        "error": "Arrow streams need pyarrow: pip install 'jms-broker[arrow]'"
    }


LOOK = """
import sys
import asyncio, json, urllib.request
from broker.app import App
from broker.settings import MEMORY, Settings

def ask(url):
    with urllib.request.urlopen(url, timeout=10) as response:
        return len(response.read())

async def main():
    app = App(Settings(port=0, store=MEMORY, http={'port': 0}))
    await app.start()
    url = app.http.url()
    told = ['pyarrow' in sys.modules]
    for path in ('/metrics', '/console/', '/arrow/events', '/arrow/events'):
        await asyncio.to_thread(ask, url + path)
        told.append('pyarrow' in sys.modules)
    await app.stop()
    print(json.dumps(told))

asyncio.run(main())
"""


@pytest.mark.requirement("OPS-16")
def test_pyarrow_is_imported_for_the_first_stream(tmp_path: Path) -> None:
    assert told_by(LOOK, tmp_path) == [False, False, False, True, True]
