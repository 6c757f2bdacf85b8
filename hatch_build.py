"""Builds the kernels into a wheel: for this platform, or the machine in ``CERFLOW_KERNELS``, such as ``aarch64``."""

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
        """A linker where there is none."""
        return [] if shutil.which("cc") and not _MACHINE else ["ziglang"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the kernels, and name the platform."""
        if version == "editable":
            return
        # By PYTHONPATH, the environment that pip isolates would lose what it installed for this build.
        path = [f"{self.root}/src", *sys.path]
        building = f"sys.path[:] = {path}; from cerflow.engine.kernels.base.building import main; main({_MACHINE!r})"
        subprocess.run([sys.executable, "-c", f"import sys; {building}"], check=True)
        platform = f"linux_{_MACHINE}" if _MACHINE else sysconfig.get_platform()
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform.replace('-', '_').replace('.', '_')}"
        build_data["artifacts"].append("src/cerflow/engine/kernels/*.so")
