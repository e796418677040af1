"""From typed sections to a ``Problem``."""
