"""Compile modules of a package with mypyc, in the folder that holds it: a child process's work.

    python native.py FOLDER JOBS MODULE…     (as paths below FOLDER: unisono/engine/cycle.py)

Every module becomes an extension beside its source, which Python then prefers, and all of them
share one library in FOLDER. It runs as a process of its own because mypyc leaves this one altered,
and with nothing but mypy and setuptools, because the build of a wheel has no more.
"""

from __future__ import annotations

import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import mypy.version
from mypyc.build import mypycify
from setuptools import Distribution, Extension
from setuptools.command.build_ext import build_ext

SHARED = "unisono"  # the library of all modules is unisono__mypyc
OPTIMISATION = "2"
# Only what is exported on purpose can be called from outside the library; all other calls between
# modules are then direct. Compilers differ in what they warn about, and it is not our code.
COMPILE = ["-fvisibility=hidden", "-Wno-error"]
LINK = ["-s"] if sys.platform == "linux" else []  # names of functions are half of the size


class SideBySide(build_ext):  # type: ignore[misc]  # setuptools has no types
    """Compiles the files of an extension several at a time; setuptools does so with extensions."""

    jobs = 1

    def build_extension(self, ext: Extension) -> None:
        """Turn all sources into objects, then let setuptools link them."""

        def to_object(source: str) -> list[str]:
            made: list[str] = self.compiler.compile(
                [source],
                output_dir=self.build_temp,
                include_dirs=ext.include_dirs,
                extra_postargs=ext.extra_compile_args,
                depends=ext.depends,
            )
            return made

        largest_first = sorted(ext.sources, key=lambda each: -Path(each).stat().st_size)
        with ThreadPoolExecutor(self.jobs) as pool:
            objects = [one for made in pool.map(to_object, largest_first) for one in made]
        ext.extra_objects = sorted(objects)
        ext.sources = []
        super().build_extension(ext)


def main(arguments: list[str]) -> int:
    """Compile, and leave nothing but extensions."""
    folder, jobs, *modules = arguments
    os.chdir(folder)
    scratch = Path("build")
    os.environ["MYPYPATH"] = "."
    # `make type` is strict. Here, types of what no compiled module touches may be missing.
    options = ["--ignore-missing-imports", "--explicit-package-bases", "--config-file="]
    options.append(f"--cache-dir={scratch / 'mypy'}")
    extensions = mypycify(
        [*options, *modules],
        opt_level=OPTIMISATION,
        debug_level="0",
        multi_file=True,
        target_dir=str(scratch / "c"),
        group_name=SHARED,
    )
    for extension in extensions:
        extension.extra_compile_args += COMPILE
        extension.extra_link_args += LINK
    command = SideBySide(Distribution({"name": SHARED, "ext_modules": extensions}))
    command.jobs = command.parallel = int(jobs)
    command.build_lib = "."
    command.build_temp = str(scratch / "objects")
    command.ensure_finalized()
    command.run()
    shutil.rmtree(scratch)
    # `unisono --version` reads it.
    Path(SHARED, "compiled-by").write_text(f"mypyc {mypy.version.__version__}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
