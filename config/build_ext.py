"""Compile the C files that mypyc writes, in parallel and optimized as one program.

`setup.cfg` names the class to setuptools. mypyc writes a C file for each Python module, and all of
them are linked to one library. Besides, each module has an extension of a few lines that takes the
module from the library.
"""

from __future__ import annotations

import gc
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from setuptools import Extension
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, LinkError

FOLDER: Final = Path(__file__).resolve().parent

JOBS: Final = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1

HEADER: Final = "cold_paths.h"

COMPILE: Final = ["-fvisibility=hidden", "-fno-plt", "-include", HEADER]
"""Calls within the library are direct, and code for failures is in a separate section (HEADER)."""

LTO_COMPILE: Final = ["-flto"]
LTO_LINK: Final = [f"-flto={JOBS}", "-O3", "-g0"]
"""Optimize across files when the library is linked, in JOBS processes."""


class ParallelBuildExt(build_ext):
    """setuptools' `build_ext`, with up to JOBS processes of the compiler at the same time."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or JOBS

    def build_extensions(self) -> None:
        """Compile all files of all extensions, then link the extensions side by side."""
        # mypy's trees, some millions of objects, are still in memory: when Python exits, it would
        # search them for cycles, which takes seconds.
        gc.freeze()
        if self.compiler.compiler_type == "unix":
            self._set_flags()
            self._precompile_header()
        with ThreadPoolExecutor(self.parallel) as pool:
            pending = [
                (extension, [pool.submit(self._compile, extension, source) for source in sources])
                for extension in self.extensions
                if (sources := sorted(extension.sources))
            ]
            for extension, objects in pending:
                extension.extra_objects = [done.result() for done in objects]
                extension.sources = []
        super().build_extensions()

    def _set_flags(self) -> None:
        has_lto = self._has_lto()
        for extension in self.extensions:
            lto = has_lto and len(extension.sources) > 1
            # New lists for each extension, because mypyc gives all extensions the same ones.
            extension.include_dirs = [self.build_temp, str(FOLDER), *extension.include_dirs]
            extension.extra_compile_args = [
                *extension.extra_compile_args,
                *COMPILE,
                *(LTO_COMPILE if lto else ()),
            ]
            extension.extra_link_args = [*extension.extra_link_args, *(LTO_LINK if lto else ())]

    def _precompile_header(self) -> None:
        """Parse HEADER, and with it Python's own headers, once instead of for each file.

        The compiler looks for the results in a folder named like the header with `.gch` appended,
        uses the one that was made with its flags, and reads the header itself if there is none.
        """
        folder = Path(self.build_temp, f"{HEADER}.gch")
        folder.mkdir(parents=True, exist_ok=True)
        includes = [f"-I{path}" for path in self.compiler.include_dirs]
        command = [*self.compiler.compiler_so, *includes, "-x", "c-header", str(FOLDER / HEADER)]
        for number, flags in enumerate({tuple(e.extra_compile_args) for e in self.extensions}):
            # Here the header is the input file, so it must not be included as well.
            own = [flag for flag in flags if flag not in ("-include", HEADER)]
            self.spawn([*command, *own, "-o", str(folder / f"{number}.gch")])

    def _has_lto(self) -> bool:
        """Return whether this compiler and its linker accept GCC's options for LTO."""
        with tempfile.TemporaryDirectory() as folder:
            probe = Path(folder, "probe.c")
            probe.write_text("int probe(void) { return 0; }\n")
            try:
                objects = self.compiler.compile(
                    [str(probe)], output_dir=folder, extra_postargs=LTO_COMPILE
                )
                self.compiler.link_shared_object(
                    objects, str(Path(folder, "probe.so")), extra_postargs=LTO_LINK
                )
            except (CompileError, LinkError):
                return False
        return True

    def _compile(self, extension: Extension, source: str) -> str:
        """Compile one C file, and return the name of its object file."""
        (made,) = self.compiler.compile(
            [source],
            output_dir=self.build_temp,
            include_dirs=extension.include_dirs,
            debug=self.debug,
            extra_postargs=extension.extra_compile_args,
            depends=extension.depends,
        )
        return str(made)
