"""Build the compiled core if a C compiler is available; rankgauge also works without it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import platform_tags

CORE = Path("src/rankgauge/core")


class NativeBuildHook(BuildHookInterface):
    """Compile `native.c` into the package, for the stable ABI of Python 3.11."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Compile, and tag the wheel for the platform; if compiling fails, only warn."""
        if self.target_name != "wheel":
            return
        for old in (Path(self.root) / CORE).glob("_native.*[do]"):  # .pyd, .so; not .pyi
            old.unlink()
        try:
            built = _compile(Path(self.root))
        except Exception as error:  # noqa: BLE001 - compilers fail in many ways
            self.app.display_warning(
                f"rankgauge is slower without its compiled core ({type(error).__name__}: {error}); "
                "its results are the same. To build the core, install a C compiler and reinstall."
            )
            return
        platform = next(tag for tag in platform_tags() if not tag.startswith(("many", "musl")))
        build_data["pure_python"] = False
        build_data["tag"] = f"cp311-abi3-{platform}"
        build_data["artifacts"].append(f"/{built.as_posix()}")


def _compile(root: Path) -> Path:
    """Compile into the source folder; return the path of the library."""
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    name = "rankgauge.core._native"
    source = str(root / CORE / "native.c")
    # A fused product and sum is rounded once instead of twice, and would differ from NumPy's.
    flags = [] if os.name == "nt" else ["-ffp-contract=off"]
    extension = Extension(name, [source], py_limited_api=True, extra_compile_args=flags)
    with tempfile.TemporaryDirectory() as folder:
        command = build_ext(Distribution({"ext_modules": [extension]}))
        command.build_lib = command.build_temp = folder
        command.ensure_finalized()
        command.run()
        made = Path(command.get_ext_fullpath(name))
        target = CORE / made.name
        # Replace the file atomically, since a running process may have loaded the old one.
        new = root / target.with_name(f".{made.name}.new")
        new.write_bytes(made.read_bytes())
        new.replace(root / target)
    return target
