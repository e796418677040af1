"""What a ``[transport]`` table asks for."""

from __future__ import annotations

from optmech.errors import ProblemError, inside
from optmech.exact.number import parse_exact
from optmech.files.make.context import Context, Listed
from optmech.files.make.priors import build_distribution
from optmech.files.schema import transport as schema
from optmech.spaces.domain import Domain
from optmech.tasks.coupling import Transport


def build_transport(spec: schema.Transport, context: Context, observed: Domain) -> Transport:
    """The task with its distributions; errors are placed inside the table."""
    inputs = []
    for k, entry in enumerate(spec.inputs):
        with inside(f"inputs[{k}].distribution"):
            inputs.append(build_distribution(entry.distribution, context))
    target = None
    if spec.target is not None:
        # labels of a target are looked up among the observables
        same = observed is context.domain
        place = context if same else Context(context.directory, Listed(observed), observed)
        with inside("target"):
            target = build_distribution(spec.target, place)
    names = tuple(entry.name or str(k) for k, entry in enumerate(spec.inputs))
    if len(set(names)) < len(names):
        raise ProblemError("two inputs have one name", where="inputs", remedy="Rename one of them")
    weights = [entry.weight for entry in spec.inputs]
    if not any(weights):
        raise ProblemError("the weights sum to 0", where="inputs", remedy="Give a positive weight")
    return Transport(
        task=spec.task,
        names=names,
        inputs=tuple(inputs),
        weights=tuple(weights),
        target=target,
        order=float(spec.p),
        outside=spec.outside,
        epsilon=spec.epsilon or parse_exact(0, where="epsilon"),
        delta=spec.delta or parse_exact(0, where="delta"),
        epsilons=None if spec.epsilons is None else tuple(spec.epsilons),
        divergence=spec.divergence,
    )
