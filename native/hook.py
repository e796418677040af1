"""The build hook that pyproject.toml names: it puts the kernels into wheels, and into the checkout
that an editable installation points to.

The library knows nothing of Python's versions, so one wheel for a platform will do. Where it cannot
be compiled the wheel is pure, and NumPy does the same work.
"""

from __future__ import annotations

import runpy
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUILD = runpy.run_path(str(Path(__file__).with_name("build.py")))


class Kernels(BuildHookInterface[Any]):
    """The library as a part of the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """See hatchling: called before files are chosen."""
        if self.target_name != "wheel":
            return
        library = BUILD["LIBRARY"]
        try:
            # compiling takes most of the time of an installation
            if not BUILD["is_current"](Path(self.root) / library):
                BUILD["build"](Path(self.root) / library)
        except (OSError, subprocess.CalledProcessError) as error:
            said = getattr(error, "stderr", None) or error
            self.app.display_warning(f"{said}\nno kernels are compiled: NumPy will do the work")
            return
        if version == "editable":
            return
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["artifacts"].append(library.as_posix())
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
