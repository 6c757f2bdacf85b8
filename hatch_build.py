"""Builds the kernels into a wheel, which is one for a platform then.

``CERFLOW_KERNELS`` may name the machine to build for, as ``aarch64``; ``off`` leaves the kernels out, and the wheel is
for all platforms.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_CHOICE = os.environ.get("CERFLOW_KERNELS", "")


class KernelsHook(BuildHookInterface[Any]):
    """Hatchling calls it for wheels."""

    def dependencies(self) -> list[str]:
        """What importing and compiling the kernels takes, and a linker where there is none."""
        if _CHOICE == "off":
            return []
        needed = [*self.metadata.core.dependencies, *self.metadata.core.optional_dependencies["compile"]]
        return needed if shutil.which("cc") and not _CHOICE else [*needed, "ziglang"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the kernels, and name the platform."""
        if _CHOICE == "off" or version == "editable":
            return
        sources = Path(self.root, "src")
        command = [sys.executable, "-m", "cerflow.engine.kernels.base.building", *filter(None, [_CHOICE])]
        subprocess.run(command, env={**os.environ, "PYTHONPATH": str(sources)}, check=True)
        platform = f"linux_{_CHOICE}" if _CHOICE else sysconfig.get_platform()
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform.replace('-', '_').replace('.', '_')}"
        build_data["artifacts"].append("src/cerflow/engine/kernels/kernels.so")
