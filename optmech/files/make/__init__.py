"""From typed sections to a ``Problem``."""

from optmech.files.make.assemble import assemble

__all__ = ["assemble"]
