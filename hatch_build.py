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
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_MACHINE = os.environ.get("CERFLOW_KERNELS", "")


class KernelsHook(BuildHookInterface[Any]):
    """Hatchling calls it for wheels."""

    def dependencies(self) -> list[str]:
        """What importing and compiling the kernels takes, and a linker where there is none."""
        needed = [*self.metadata.core.dependencies, *self.metadata.core.optional_dependencies["compile"]]
        linker = [] if shutil.which("cc") and not _MACHINE else ["ziglang"]
        return [] if _MACHINE == "off" else needed + linker

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the kernels, and name the platform."""
        if _MACHINE == "off" or version == "editable":
            return
        command = [sys.executable, "-m", "cerflow.engine.kernels.base.building", *filter(None, [_MACHINE])]
        subprocess.run(command, env={**os.environ, "PYTHONPATH": f"{self.root}/src"}, check=True)
        platform = f"linux_{_MACHINE}" if _MACHINE else sysconfig.get_platform()
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform.replace('-', '_').replace('.', '_')}"
        build_data["artifacts"].append("src/cerflow/engine/kernels/kernels.so")
