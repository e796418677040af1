"""One self-contained page about one or several designs, for people to look at."""

from optmech.show.reports.page import report

__all__ = ["report"]
