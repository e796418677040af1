"""From typed sections to a ``Problem``."""

from optmech.files.build.assemble import assemble

__all__ = ["assemble"]
