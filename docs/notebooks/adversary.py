"""What an adversary learns from one report. Run: marimo edit docs/notebooks/adversary.py"""

import marimo

app = marimo.App(width="medium")


@app.cell
def _():
    import marimo as mo
    import numpy as np

    import optmech as om

    return mo, np, om


@app.cell
def _(mo):
    mo.md(
        """
        # One report, two adversaries

        A mechanism is designed so that the best attack of somebody who knows the prior errs by at
        least d_m. What does an adversary achieve who knows more about the person?
        """
    )
    return


@app.cell
def _(om):
    km = om.distances.euclidean()
    line = om.Domain.range(7, unit="km")
    prior = om.Prior.from_counts(line, [1, 2, 6, 3, 2, 4, 1])
    design = om.solve(
        om.Problem(
            prior,
            om.distances.hamming(),
            constraints=[om.MetricPrivacy("ln 2", km), om.DistortionPrivacy(1.0, km)],
        )
    )
    return design, km, line, prior


@app.cell
def _(mo):
    evidence = mo.ui.slider(0.0, 1.0, 0.1, value=0.5, label="evidence on the two likeliest places")
    evidence
    return (evidence,)


@app.cell
def _(design, evidence, km, om, prior):
    expected = om.attacks.optimal_attack(design.mechanism, prior, km)
    informed = om.attacks.sharpened(prior, top=2, evidence=evidence.value)
    better = om.attacks.optimal_attack(design.mechanism, informed, km)
    return better, expected


@app.cell
def _(better, expected, mo):
    mo.md(
        f"""
        | adversary | error in km |
        |---|---|
        | knows the prior | {expected.error:.4f} |
        | knows more | {better.error:.4f} |
        """
    )
    return


@app.cell
def _(design, np, prior):
    observable = int(np.argmax(design.mechanism.push(prior.weights)))
    joint = prior.weights * design.mechanism.matrix[:, observable]
    belief = joint / joint.sum()
    # metric privacy holds against everybody: odds move by at most 2 per km
    moved = np.abs(np.diff(np.log(belief) - np.log(prior.weights))).max()
    return belief, moved, observable


if __name__ == "__main__":
    app.run()
