"""``optmech trace``: noise for a trace of positions, or the loss of given noise; or mechanisms for
the steps of a Markov chain, and what an adversary learns."""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING

from optmech.cli.inputs import require_seed
from optmech.cli.output import Answer, Facts, Grid, Piece, Title, claim_outputs, note
from optmech.exact.number import from_above, from_below

if TYPE_CHECKING:
    from optmech_traces.chains.adversary import AdversaryReport
    from optmech_traces.chains.task import ChainAnswer
    from optmech_traces.gaussian.task import GaussianAnswer

SUMMARY = "protect a trace of positions that depend on each other"
EXAMPLE = "optmech trace ten-points -o noise.json --picture trace.png"


ARGUMENTS = {
    "trace FILE|NAME": "a trace file, or a gallery name",
    "-o --output OUT": "write the noise, or the figures, to this JSON file",
    "--picture PNG": "draw the trace and the worst hypothesis, or errors over time",
    "--seed N:int=0": "of what is drawn and simulated",
    "releasing a trace": {
        "--release TABLE": "a table with a row for every time: it is released as designed, to "
        "OUT (.csv)",
        "--x COLUMN": "longitude, or the first coordinate",
        "--y COLUMN": "latitude, or the second coordinate",
        "--label COLUMN": "labels, instead of coordinates",
    },
}


def run(args: Namespace) -> Answer:
    """0 where the promised loss is proved, or there is none to keep; 1 otherwise."""
    from optmech_traces.chains.task import ChainAnswer, ChainTask
    from optmech_traces.files import read

    file = read(args.trace)
    task = file.task
    require_seed(args.seed)
    if args.release is not None:
        args.output = args.output or "-"
    claim_outputs(args, [*file.inputs, args.release])
    answer: ChainAnswer | GaussianAnswer
    if isinstance(task, ChainTask):
        if task.counted:
            note(task.counted)
        answer = task.solve(args.seed, note)
    else:
        note(f"computing losses of {len(task.trace)} positions")
        answer = task.solve()
    if args.release is not None:
        # a trace of one's own, instead of what an adversary learns of others
        from optmech_traces.table import release_trace

        notes = release_trace(answer, args.release, args.output, (args.x, args.y, args.label))
        values = {"release": args.release, "notes": notes}
        return Answer(values, files={"output": "released trace"}, notes=notes)
    summary = answer.summary()
    if args.output:
        answer.save(args.output)
    if args.picture:
        from optmech_traces.picture import chain_picture, trace_picture

        if isinstance(answer, ChainAnswer):
            sequential, repeated = answer.sequential, answer.repeated
            chain_picture(sequential, repeated, args.picture, task.unit, task.title)
        else:
            trace_picture(answer.task, answer.noise, answer.worst, args.picture, seed=args.seed)
    chain = isinstance(answer, ChainAnswer)
    return Answer(
        {**summary, "file": str(file.path)},
        _chain(answer) if isinstance(answer, ChainAnswer) else _noise(answer),
        {"output": "figures" if chain else "noise", "picture": "picture"},
        summary.get("notes", ()),
        status=0 if summary["verified"] else 1,
    )


def _noise(answer: GaussianAnswer) -> Iterator[Piece]:
    """The noise, its losses, and what other noise would cost."""
    from optmech.show import words

    p, worst, design, f = answer.task, answer.worst, answer.design, answer.task.fitted
    sets = f"{len(p.secrets[0])} positions" if len(p.secrets) == 1 else f"{len(p.secrets)} sets"
    unit = words.after(p.unit)
    region = "ball" if p.ball else "box"
    kept = "kept, proved" if answer.kept else "NOT kept"
    s, i = answer.subsets, answer.interval
    facts: dict[str, str | None] = {
        "trace": f"{len(p.trace)} times, {p.trace.dimensions} axes",
        "secrets": f"{sets}, within {p.radius:g}{unit} ({region})",
        "fitted": None
        if f is None
        else f"length scale {f.length_scale:.5g}, variance {f.variance:.5g}, errors {f.noise:.3g}",
        "loss": f"{from_below(worst.lower, 9)} to {from_above(worst.upper, 9)} "
        f"(Rényi, order {p.order:g})",
        "promise": None if p.epsilon is None else f"{float(p.epsilon):.9g}: {kept}",
        "variance": None
        if design is None
        else f"{design.trace:.9g}, at least {from_below(design.lower_bound, 9)} (gap "
        f"{from_above(design.gap, 2)}, for the {answer.region})",
        "(ε, δ)": None
        if p.delta is None
        else f"({from_above(worst.epsilon(p.delta))}, {p.delta:g})",
        "worst set": None
        if s is None
        else f"{list(s.secrets)} of {s.count:,}: loss {from_below(s.loss.lower)}, "
        f"none above {from_above(s.upper)}",
        "length scales": None
        if i is None
        else f"worst {i.length_scale:.6g}: loss {from_below(i.lower)}, "
        f"none above {from_above(i.upper)}",
    }
    yield Title(p.title)
    yield Facts(facts)
    if answer.choices:
        unit = words.in_brackets(p.unit)
        size = len(p.trace.covariance)
        rows = [
            (c.name, *(f"{x:.6g}" for x in (math.sqrt(c.variance / size), c.variance, c.loss)))
            for c in answer.choices
        ]
        header = ("noise", f"rms per coordinate{unit}", "total variance", "loss at most")
        yield Grid(header, rows, right=(1, 2, 3))
    shifts = worst.hypothesis.reshape(len(worst.secrets), -1)
    hypothesis = [
        (str(s), f"{p.trace.times[s]:.6g}", "  ".join(f"{x:+.5g}" for x in shift))
        for s, shift in zip(worst.secrets, shifts.tolist(), strict=True)
    ]
    yield Grid(("secret", "time", "worst hypothesis"), hypothesis, right=(0, 1, 2))


def _chain(answer: ChainAnswer) -> Iterator[Piece]:
    """What adversaries learn over time, and a trace as it was released."""
    from optmech.show import words

    p = answer.task
    report, other = answer.sequential, answer.repeated
    unit = words.in_brackets(p.unit)

    def averaged(report: AdversaryReport, what: str) -> str:
        values = getattr(report, what)
        error = f" ± {values.average_error:.2g}" if values.average_error > 0 else ""
        return f"{values.average:.4g}{error}"

    errors = {}
    for what in ("filtering", "smoothing", "loss"):
        errors[what] = f"{averaged(report, what)} on average"
        if other is not None:
            errors[what] += f"; one mechanism repeated: {averaged(other, what)}"
    yield Title(p.title)
    how = "all releases" if p.exact else f"{report.traces} traces of the chain"
    done = ", ".join(f"{count} {name}" for name, count in sorted(report.actions.items()))
    d = answer.first.design
    yield Facts(
        {
            "trace": f"{p.steps} times, {len(p.designer.prior)} cells",
            "data": p.counted,
            "time 0": None
            if d is None
            else f"loss {d.loss:.6g}, gap {from_above(d.gap, 2)}, verified",
            "adversary": f"knows the chain and every mechanism; {how}",
            "steps": done,
            **errors,
        }
    )
    header = ["time", "blind", "filtering", "smoothing", f"loss{unit}"]
    columns = [report.blind, report.filtering.mean, report.smoothing.mean, report.loss.mean]
    if other is not None:
        header += ["repeated: filtering", "smoothing", "loss"]
        columns += [other.filtering.mean, other.smoothing.mean, other.loss.mean]
    rows = [[str(t), *(f"{column[t]:.4g}" for column in columns)] for t in range(p.steps)]
    yield Grid(header, rows, right=range(len(header)))
    if answer.released is not None:
        rows = [
            [str(t), step["action"], step["release"] or ""]
            for t, step in enumerate(answer.releases(answer.released))
        ]
        yield Grid(("time", "action", "released"), rows, right=(0,))
