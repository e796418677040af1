"""Audit of a design file with nothing but the Python standard library.

    python -P -m optmech_audit design.json
    python -P -m optmech_audit family.json              (mechanisms with an auxiliary input)
    python -P -m optmech_audit city.omm design.json     (a packed mechanism and its design)
    python -P -m optmech_audit earth.omm                (a packed mechanism for the whole earth)
    python -P -m optmech_audit.alone audit.py           (writes all of this as one file, to hand on)

Reads the file and proves again, in whole numbers and fractions: that every row of the mechanism
is a distribution, that every stated inequality holds exactly, what the objective is, and that no
mechanism can do better than the bound (or that none exists); that distances with a name are those
of the coordinates, and what thresholds leave of ε. Entries that are unknown, missing or written in
another way than optmech writes them are refused, and what is not checked is named at the end. It
shares no code with the rest of optmech.

It is meant to be read chapter by chapter, in the order of ``alone.CHAPTERS``. "Theory" is
``docs/theory.md`` and its chapters, which have the proofs.

Floats in the file stand for the binary fractions that they are; distributions over secrets in
distribution privacy are divided by their exact sum.
"""

from optmech_audit.numbers import Fault
from optmech_audit.verdict import audit, judge, main

__all__ = ["Fault", "audit", "judge", "main"]
