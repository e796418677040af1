"""Noise that is added to a whole number, exactly: its law with its tails, what privacy it gives,
the lower bound of all such noise, and files that prove both."""

from optmech.spaces.arguments import KINDS, LOAD, Kind

_HERE = __name__
_NOISE = "Give what om.noise.optimal returns"

KINDS |= {
    "NoiseDesign": Kind(
        f"{_HERE}.design",
        "Give noise for ε, or ε and δ, as om.noise.optimal(epsilon=…, sensitivity=…) returns",
        {"str": LOAD},
    ),
    "CertifiedNoise": Kind(f"{_HERE}.result", _NOISE, {"str": LOAD}, "noise for a number"),
    "CellNoise": Kind(
        f"{_HERE}.cells",
        "Give what om.noise.real returns",
        {"str": LOAD},
        "noise for a real number",
    ),
    "RealNoise": Kind(
        f"{_HERE}.design", "Give what om.noise.real returns", {"str": LOAD}, "real noise"
    ),
}
