"""Make the tree of the wheel `amqp-conformance`, and build it.

    python -m config.conformance_wheel FOLDER

The harness is `tests/conformance`, without its tests. The modules of `CODEC` are carried in it as
`amqp_conformance.codec`: their imports are the only lines that differ. So the wheel neither needs
the package `broker` nor collides with it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
HARNESS: Final = ROOT / "tests" / "conformance"
AMQP: Final = ROOT / "broker" / "amqp"
PROJECT: Final = ROOT / "config" / "amqp-conformance"

PACKAGE: Final = "amqp_conformance"
CARRIED: Final = f"{PACKAGE}.codec"

CODEC: Final = (
    "composite",
    "constructors",
    "decode",
    "descriptors",
    "encode",
    "errors",
    "frames",
    "limits",
    "outcomes",
    "performatives",
    "sasl_frames",
    "serial",
    "terminus",
    "transfer",
    "types",
)
"""The modules of `broker.amqp` that the harness needs, with those that they need themselves."""

VERSION: Final = re.compile(r'^__version__: Final = "(?P<version>[^"]+)"$', re.MULTILINE)

IMPORT: Final = re.compile(r"^(?P<indent> *)from broker(?:\.amqp)?(?P<rest>[. ].*)$", re.MULTILINE)
OTHER: Final = re.compile(r"^ *(?:import|from) (?:broker|storage|tests)\b.*$", re.MULTILINE)

CODEC_INIT: Final = '''"""Types and frames of AMQP 1.0: modules of jms-broker {version}."""

from typing import Final

__version__: Final = "{version}"
'''
"""The `__init__.py` of the carried modules."""


def version() -> str:
    """Return the version of this checkout, which both wheels have."""
    found = VERSION.search((ROOT / "broker" / "__init__.py").read_text(encoding="utf-8"))
    assert found is not None, "broker/__init__.py has no version"
    return found["version"]


def carried(text: str) -> str:
    """Return the text of a module that imports the carried codec. Raise ValueError for others."""
    changed = IMPORT.sub(rf"\g<indent>from {CARRIED}\g<rest>", text)
    if left := OTHER.search(changed):
        raise ValueError(f"the wheel does not carry what is imported here: {left[0].strip()}")
    return changed


def carry(package: Path) -> None:
    """Turn the imports of each module in `package` and the packages within it."""
    for module in package.rglob("*.py"):
        module.write_text(carried(module.read_text(encoding="utf-8")), encoding="utf-8")


def make_tree(folder: Path) -> None:
    """Make the tree of the wheel in `folder`. Raise FileExistsError if something is in it."""
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty")
    ignored = shutil.ignore_patterns("test_*.py", "conftest.py", "__pycache__", "README.md", "*.so")
    package = folder / PACKAGE
    shutil.copytree(HARNESS, package, ignore=ignored)
    carry(package)
    codec = package / "codec"
    codec.mkdir()
    (codec / "__init__.py").write_text(CODEC_INIT.format(version=version()), encoding="utf-8")
    for name in CODEC:
        text = (AMQP / f"{name}.py").read_text(encoding="utf-8")
        (codec / f"{name}.py").write_text(carried(text), encoding="utf-8")
    for file in (PROJECT / "pyproject.toml", PROJECT / "README.md", ROOT / "LICENSE"):
        shutil.copy(file, folder)


def build_wheel(folder: Path) -> Path:
    """Build the wheel with the hatchling of this environment; return its file in `folder`.

    It replaces an equal one; other files in `folder` stay as they are.
    """
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    with tempfile.TemporaryDirectory() as made:
        tree, wheels = Path(made) / "tree", Path(made) / "wheels"
        make_tree(tree)
        subprocess.run([*pip, "-w", str(wheels), str(tree)], check=True)
        (built,) = wheels.glob("*.whl")
        folder.mkdir(parents=True, exist_ok=True)
        return Path(shutil.move(built, folder / built.name))


if __name__ == "__main__":
    print(build_wheel(Path(sys.argv[1]).resolve()))
