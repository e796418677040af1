"""The kinds of constraints, related ones in one file; all modules of this folder are imported.

Sources: PG = Shokri, Privacy Games (PETS 2015); DP19 = Kawamoto and Murakami, Local Obfuscation
Mechanisms for Hiding Probability Distributions (ESORICS 2019); CM19 = the same, Local Distribution
Obfuscation via Probability Coupling (Allerton 2019).
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
