"""Answers about traces, for people."""

from __future__ import annotations

import math

from optmech.cli import output
from optmech.show import words
from optmech.tasks.chain import ChainAnswer
from optmech.tasks.gaussian import GaussianAnswer
from optmech.traces.chains.adversary import AdversaryReport, Series


def show_noise(answer: GaussianAnswer) -> None:
    """The noise, its losses, and what other noise would cost."""
    p, worst = answer.task, answer.worst
    output.title(p.title)
    output.facts(_facts(answer))
    if answer.choices:
        output.blank()
        unit = words.in_brackets(p.unit)
        size = len(p.trace.covariance)
        rows = [
            (c.name, *(f"{x:.6g}" for x in (math.sqrt(c.variance / size), c.variance, c.loss)))
            for c in answer.choices
        ]
        header = ("noise", f"rms per coordinate{unit}", "total variance", "loss at most")
        output.grid(header, rows, right=(1, 2, 3))
    output.blank()
    columns = ("secret", "time", "worst hypothesis")
    shifts = worst.hypothesis.reshape(len(worst.secrets), -1)
    rows3 = [
        (str(s), f"{p.trace.times[s]:.6g}", "  ".join(f"{x:+.5g}" for x in shift))
        for s, shift in zip(worst.secrets, shifts.tolist(), strict=True)
    ]
    output.grid(columns, rows3, right=(0, 1, 2))


def _facts(answer: GaussianAnswer) -> list[tuple[str, str]]:
    p, worst, design = answer.task, answer.worst, answer.design
    sets = f"{len(p.secrets[0])} positions" if len(p.secrets) == 1 else f"{len(p.secrets)} sets"
    unit = words.after(p.unit)
    region = "ball" if p.ball else "box"
    facts = [
        ("trace", f"{len(p.trace)} times, {p.trace.dimensions} axes"),
        ("secrets", f"{sets}, within {p.radius:g}{unit} ({region})"),
    ]
    if (f := p.fitted) is not None:
        lengths = f"length scale {f.length_scale:.5g}, variance {f.variance:.5g}"
        facts.append(("fitted", f"{lengths}, errors {f.noise:.3g}"))
    facts.append(("loss", f"{worst.lower:.9g} to {worst.upper:.9g} (Rényi, order {p.order:g})"))
    if p.epsilon is not None:
        kept = "kept, proved" if answer.kept else "NOT kept"
        facts.append(("promise", f"{float(p.epsilon):.9g}: {kept}"))
    if design is not None:
        least = f"at least {design.lower_bound:.9g} (gap {design.gap:.2g}, for the {answer.region})"
        facts.append(("variance", f"{design.trace:.9g}, {least}"))
    if p.delta is not None:
        facts.append(("(ε, δ)", f"({worst.epsilon(p.delta):.6g}, {p.delta:g})"))
    if (s := answer.subsets) is not None:
        worst_set = f"{list(s.secrets)} of {s.count:,}: loss {s.loss.lower:.6g}"
        facts.append(("worst set", f"{worst_set}, none above {s.upper:.6g}"))
    if (i := answer.interval) is not None:
        worst_length = f"worst {i.length_scale:.6g}: loss {i.lower:.6g}"
        facts.append(("length scales", f"{worst_length}, none above {i.upper:.6g}"))
    return facts


def show_chain(answer: ChainAnswer) -> None:
    """What adversaries learn over time, and a trace as it was released."""
    p = answer.task
    report, other = answer.sequential, answer.repeated
    unit = words.in_brackets(p.unit)
    output.title(p.title)
    how = "all releases" if p.exact else f"{report.traces} traces of the chain"
    done = ", ".join(f"{count} {name}" for name, count in sorted(report.actions.items()))
    facts = [
        ("trace", f"{p.steps} times, {len(p.designer.prior)} cells"),
        ("adversary", f"knows the chain and every mechanism; {how}"),
        ("steps", done),
        *((what, _summary(what, report, other)) for what in ("filtering", "smoothing", "loss")),
    ]
    if p.counted:
        facts.insert(1, ("data", p.counted))
    if answer.first.design is not None:
        d = answer.first.design
        facts.insert(2, ("time 0", f"loss {d.loss:.6g}, gap {d.gap:.2g}, verified"))
    output.facts(facts)
    output.blank()
    header = ["time", "blind", "filtering", "smoothing", f"loss{unit}"]
    columns = [report.blind, report.filtering.mean, report.smoothing.mean, report.loss.mean]
    if other is not None:
        header += ["repeated: filtering", "smoothing", "loss"]
        columns += [other.filtering.mean, other.smoothing.mean, other.loss.mean]
    rows = [[str(t), *(f"{column[t]:.4g}" for column in columns)] for t in range(p.steps)]
    output.grid(header, rows, right=range(len(header)))
    if answer.released is not None:
        output.blank()
        rows = [
            [str(t), step["action"], step["release"] or ""]
            for t, step in enumerate(answer.releases(answer.released))
        ]
        output.grid(("time", "action", "released"), rows, right=(0,))


def _summary(what: str, report: AdversaryReport, other: AdversaryReport | None) -> str:
    def words(report: AdversaryReport) -> str:
        values: Series = getattr(report, what)
        error = f" ± {values.average_error:.2g}" if values.average_error > 0 else ""
        return f"{values.average:.4g}{error}"

    text = f"{words(report)} on average"
    return text if other is None else f"{text}; one mechanism repeated: {words(other)}"
