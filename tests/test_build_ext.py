"""Compilation of the wheel's C files: `config/build_ext.py`, called as hatch-mypyc calls it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

SETUP = """\
from setuptools import Extension, setup
setup(name="output", ext_modules=[
    Extension("library", sources=["one.c", "two.c"]), Extension("shim", sources=["three.c"])
])
"""
MODULE = """\
#include <Python.h>
{declared}
static PyMethodDef methods[] = {{{{"answer", answer, METH_NOARGS, 0}}, {{0}}}};
static struct PyModuleDef module = {{PyModuleDef_HEAD_INIT, "{name}", 0, -1, methods}};
PyMODINIT_FUNC PyInit_{name}(void) {{ return PyModule_Create(&module); }}
"""
OTHER_FILE = """\
#include <Python.h>
PyObject *answer(PyObject *self, PyObject *none) { return PyLong_FromLong(42); }
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed"),
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Write a library of two C files and an extension of one, with this project's `setup.cfg`."""
    (tmp_path / "config").mkdir()
    for name in ("setup.cfg", "config/build_ext.py", "config/cold_paths.h"):
        shutil.copy(ROOT / name, tmp_path / name)
    declared = "PyObject *answer(PyObject *, PyObject *);"
    (tmp_path / "setup.py").write_text(SETUP)
    (tmp_path / "one.c").write_text(MODULE.format(name="library", declared=declared))
    (tmp_path / "two.c").write_text(OTHER_FILE)
    alone = OTHER_FILE.replace("PyObject *answer", "static PyObject *answer").splitlines()[1]
    (tmp_path / "three.c").write_text(MODULE.format(name="shim", declared=alone))
    return tmp_path


def compiler(folder: Path, *lines: str) -> str:
    """Return the path of a compiler that runs `lines` of shell first."""
    program = folder / "compiler"
    program.write_text("\n".join(["#!/bin/sh", *lines, 'exec gcc "$@"', ""]))
    program.chmod(0o755)
    return str(program)


def build(project: Path, program: str = "gcc") -> None:
    done = subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--inplace", "--parallel", "2"],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | {"CC": program},
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"


def answers(project: Path) -> str:
    """Return the answers of the two modules in `project`."""
    code = "import library, shim; print(library.answer(), shim.answer())"
    return subprocess.check_output([sys.executable, "-c", code], cwd=project, text=True)


def symbols(project: Path, *options: str) -> set[str]:
    """Return the symbols that the library defines."""
    (library,) = project.glob("library.*.so")
    listed = ["nm", "--defined-only", "--format=just-symbols", *options, str(library)]
    return set(subprocess.check_output(listed, text=True).split())


def test_two_files_of_one_library_are_compiled_at_the_same_time(project: Path) -> None:
    os.mkfifo(project / "meeting")
    one = 'case "$*" in *" -c one.c "*) echo here >meeting ;; esac'
    two = 'case "$*" in *" -c two.c "*) cat meeting ;; esac'
    build(project, compiler(project, one, two))
    assert answers(project) == "42 42\n"


def test_a_library_shows_its_beginning_and_nothing_else(project: Path) -> None:
    build(project)
    assert symbols(project, "--dynamic") == {"PyInit_library"}


def test_a_compiler_without_lto_builds_the_same(project: Path) -> None:
    build(project, compiler(project, 'case " $* " in *" -flto"*) exit 1 ;; esac'))
    assert answers(project) == "42 42\n"


def test_a_library_is_optimized_across_its_files_and_a_small_extension_is_not(
    project: Path,
) -> None:
    told = 'case " $* " in *" -flto"*" -o "*library*|*" -o "*library*" -flto"*) touch library-lto'
    build(project, compiler(project, f"{told} ;; *shim*-flto*) touch shim-lto ;; esac"))
    assert (project / "library-lto").exists()
    assert not (project / "shim-lto").exists()
    assert answers(project) == "42 42\n"


def test_an_error_of_the_compiler_ends_the_build(project: Path) -> None:
    (project / "two.c").write_text("#error this is wrong\n")
    with pytest.raises(AssertionError, match="this is wrong"):
        build(project)
