"""Engines by name, each imported when it is asked for; and the choice of one by the size and kind
of a program."""

from collections.abc import Collection
from importlib import import_module

from optmech.engines.base import Engine
from optmech.errors import ProblemError
from optmech.lp.blocks import BlockLP

DIRECT_PAIR_ROWS = 8_000
"""Up to this many pair rows HiGHS solves the whole program in a fraction of a second (2 cores)."""
DIRECT_LOCAL_ROWS = 60_000
"""Beyond so many rows inside blocks (300 secrets with distortion have 90,000) HiGHS takes minutes
where the structured engine, which holds few of them, takes one."""
SECOND_PAIR_ROWS = 50_000
"""Up to this many pair rows HiGHS is asked where the structured engine fell short."""
CONIC_INFORMED = 6_000
"""Up to this many entries mutual information is met by cones whatever the pairs: planes for every
entry are many, and join over many rounds."""
CONIC_PAIR_ROWS = 3_000
"""Up to this many pair rows the conic program is solved faster than a sequence of linear ones."""
_ENGINES = {
    "highs": ("optmech.engines.highs", "HighsEngine"),
    "lazy": ("optmech.engines.cutting_planes", "LazyEngine"),
    "structured": ("optmech.engines.structured", "StructuredEngine"),
    "blahut": ("optmech.engines.blahut", "BlahutEngine"),
    "conic": ("optmech.engines.conic", "ConicEngine"),
    "tangents": ("optmech.engines.cutting_planes", "TangentEngine"),
    "cvxpy": ("optmech.engines.conic", "CvxpyEngine"),
}
NAMES = (*_ENGINES, "auto")


def load_engine(name: str) -> Engine:
    """The engine called ``name``; "auto" is resolved by ``select`` beforehand."""
    if name not in _ENGINES:
        raise ProblemError(
            f"engine {name!r} is unknown",
            where="profile.engine",
            remedy=f"Use one of {', '.join(NAMES)}",
        )
    module, attribute = _ENGINES[name]
    engine: Engine = getattr(import_module(module), attribute)()
    return engine


def select(lp: BlockLP) -> tuple[str, str]:
    """The name of the engine that ``auto`` takes for a program, and the reason."""
    rows = lp.cone_rows
    if lp.informed is not None and not load_engine("blahut").refusal(lp):
        return "blahut", "mutual information alone has optima of a known form"
    if lp.perspectives:
        if rows <= CONIC_PAIR_ROWS:
            return "conic", f"divergence constraints, and no more than {rows:,} pair rows"
        if lp.informed is not None and lp.secrets * lp.blocks <= CONIC_INFORMED:
            return "conic", f"mutual information of {lp.secrets} secrets, pairs as they bind"
        return "tangents", f"divergence constraints beside {rows:,} pair rows are met by planes"
    few = rows <= DIRECT_PAIR_ROWS
    local = lp.blocks * sum(part.matrix.shape[0] for part in lp.local)
    if few and local <= DIRECT_LOCAL_ROWS:
        return "highs", f"{rows:,} pair rows are few enough to be solved at once"
    obstacle = ""
    if refusal := load_engine("structured").refusal(lp):
        obstacle = f"the structured engine says: {refusal}"
    if few:
        if obstacle:
            return "highs", f"{local:,} rows inside blocks; {obstacle}"
        return (
            "structured",
            f"{local:,} rows inside blocks, of which few bind: every report is a block",
        )
    if obstacle:
        return "lazy", f"of {rows:,} pair rows few bind; {obstacle}"
    return "structured", f"{rows:,} pair rows, of which few long ones bind: every report is a block"


def second(lp: BlockLP, first: str) -> str:
    """The engine that goes on where ``first`` did not reach the gap; empty where none would."""
    if first == "blahut":
        return "conic"
    if first == "highs":
        return "" if load_engine("structured").refusal(lp) else "structured"
    return "highs" if first == "structured" and lp.cone_rows <= SECOND_PAIR_ROWS else ""


def substitute(lp: BlockLP, broken: Collection[str]) -> str:
    """The engine that does the work where those in ``broken`` broke off; empty where none can."""
    if lp.perspectives:
        order = ["conic", "tangents"]
    else:
        few = lp.cone_rows <= SECOND_PAIR_ROWS
        order = ["structured", "highs", "lazy"] if few else ["structured", "lazy", "highs"]
    fit = (name for name in order if name not in broken and not load_engine(name).refusal(lp))
    return next(fit, "")
