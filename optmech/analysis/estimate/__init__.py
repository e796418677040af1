"""What a collector learns about everybody from private reports: the likeliest prior, with a proof
of how likely, and unbiased frequencies with their variances."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optmech.base.lazily import lazily

if TYPE_CHECKING:
    from optmech.analysis.estimate.counts import Frequencies as Frequencies
    from optmech.analysis.estimate.counts import frequencies as frequencies
    from optmech.analysis.estimate.counts import from_supports as from_supports
    from optmech.analysis.estimate.likelihood import PriorEstimate as PriorEstimate
    from optmech.analysis.estimate.likelihood import prior as prior
else:
    __getattr__, __dir__ = lazily(__name__)
