"""What a ``[transport]`` table asks for."""

from __future__ import annotations

from optmech.errors import ProblemError
from optmech.exact.number import Exact, parse_exact
from optmech.files.make.context import Context, Listed
from optmech.files.make.priors import build_distribution
from optmech.files.schema import transport as schema
from optmech.spaces.domain import Domain
from optmech.tasks.coupling import Transport


def build_transport(spec: schema.Transport, context: Context, observed: Domain) -> Transport:
    """The task with its distributions; errors are placed inside the table."""
    inputs = []
    for k, entry in enumerate(spec.inputs):
        try:
            inputs.append(build_distribution(entry.distribution, context))
        except ProblemError as error:
            raise error.at(f"inputs[{k}].distribution") from error
    target = None
    if spec.target is not None:
        try:
            target = build_distribution(spec.target, target_context(context, observed))
        except ProblemError as error:
            raise error.at("target") from error
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
        epsilon=spec.epsilon or _zero(),
        delta=spec.delta or _zero(),
        epsilons=None if spec.epsilons is None else tuple(spec.epsilons),
    )


def target_context(context: Context, observed: Domain) -> Context:
    """Where the labels of a target are looked up: among the observables."""
    if observed is context.domain:
        return context
    return Context(context.directory, Listed(observed), observed)


def _zero() -> Exact:
    return parse_exact(0, where="epsilon")
