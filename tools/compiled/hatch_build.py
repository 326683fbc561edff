"""Put the compiled modules into a wheel: `UNISONO_COMPILE=1 pip install .` (ADR 0024).

Hatchling loads this file for every wheel. Unless the variable asks for it, nothing is done: the
wheel is pure Python, for every machine. A compiled one has the sources, too, and is for this
version of Python on this kind of machine.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
from pathlib import Path
from types import ModuleType

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ASKED_FOR = "UNISONO_COMPILE"
COMPILERS = ("mypy>=1.18,<3", "setuptools>=77")
TYPED = ("msgspec", "numpy")  # dependencies whose types the compiled modules are made with


class CompiledModules(BuildHookInterface):  # type: ignore[type-arg]  # any configuration
    """Compiles a copy of the package and adds what came of it to the wheel."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:  # type: ignore[explicit-override]  # Python 3.11 has none
        """Return what must be installed to build: nothing more, unless it is asked for."""
        if not _is_asked_for():
            return []
        ours = self.metadata.core.dependencies
        return [*COMPILERS, *(one for one in ours if one.startswith(TYPED))]

    def initialize(  # type: ignore[explicit-override]  # nor here
        self, version: str, build_data: dict[str, object]
    ) -> None:
        """Compile, and name the files to add."""
        if not _is_asked_for() or version != "standard":
            return  # an editable installation runs the sources as they are
        builder = _cache_module()
        builder.check_tools()
        self._scratch = Path(tempfile.mkdtemp(prefix="unisono-compiled-"))
        builder.compile_copy(Path(self.root) / "src" / "unisono", self._scratch)
        made = [*self._scratch.rglob("*.so"), self._scratch / "unisono" / "compiled-by"]
        build_data["force_include"] = {
            str(path): str(path.relative_to(self._scratch)) for path in sorted(made)
        }
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(  # type: ignore[explicit-override]  # nor here
        self, version: str, build_data: dict[str, object], artifact_path: str
    ) -> None:
        """Remove the copy."""
        scratch = getattr(self, "_scratch", None)
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)


def _is_asked_for() -> bool:
    return os.environ.get(ASKED_FOR, "") not in ("", "0", "no", "false")


def _cache_module() -> ModuleType:
    """Load the file beside this one: in a build there is no package `tools`."""
    path = Path(__file__).resolve().with_name("cache.py")
    spec = importlib.util.spec_from_file_location("unisono_compiled_cache", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
