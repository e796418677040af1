"""Rows across the reports of a program over a mesh, with free unknowns of their own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Floats


@dataclass(frozen=True, eq=False)
class Links:
    """B p + E u <= h, and what the objective has of u."""

    rows: sp.csr_array
    """B, (K, O·N): the unknowns of a report one after the other."""
    free: Floats
    """E, (K, U)."""
    most: Floats
    """h, (K,)."""
    costs: Floats
    """(U,)."""
    start: Floats
    """u at the start, (U,)."""

    def scaled(self, reports: int, objective: float) -> tuple[Links, Floats]:
        """The same with rows whose terms are about one where all reports are as likely, costs over
        ``objective``, and what each row was divided by."""
        size = np.asarray(abs(self.rows).sum(axis=1)).ravel() / reports
        size = np.maximum(
            np.maximum(size, np.abs(self.most)), np.abs(self.free).max(axis=1, initial=0.0)
        )
        size = np.where(size > 0, size, 1.0)
        rows = sp.csr_array(sp.diags_array(1 / size) @ self.rows)
        free, most = self.free / size[:, None], self.most / size
        return Links(rows, free, most, self.costs / objective, self.start), size
