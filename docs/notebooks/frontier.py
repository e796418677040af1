"""How much privacy costs, on a small city. Run: marimo edit docs/notebooks/frontier.py"""

import marimo

app = marimo.App(width="medium")


@app.cell
def _():
    import marimo as mo

    import optmech as om

    return mo, om


@app.cell
def _(mo):
    mo.md(
        """
        # What privacy costs

        Sixteen cells, visited unevenly. A report may not change the odds between cells d km apart
        by more than e^{ε d}; of all such mechanisms we take the one with the least expected
        distance between the true cell and the reported one, and do so for several ε.
        """
    )
    return


@app.cell
def _(om):
    km = om.distances.euclidean()
    cells = om.Grid(rows=4, columns=4, cell=1.0, unit="km")
    visits = [1, 2, 1, 0, 4, 9, 3, 1, 2, 8, 5, 1, 0, 1, 2, 1]
    prior = om.Prior.from_counts(cells, visits)
    epsilons = [0.2, 0.5, 1.0, 2.0]
    return cells, epsilons, km, prior


@app.cell
def _(epsilons, km, om, prior):
    designs = [
        om.solve(om.Problem(prior, km, constraints=[om.MetricPrivacy(epsilon, km)]))
        for epsilon in epsilons
    ]
    losses = [design.loss for design in designs]
    prices = [om.prices.of_constraints(design)[0].rate for design in designs]
    return designs, losses, prices


@app.cell
def _(epsilons, losses, mo, prices):
    mo.ui.table(
        [
            {"ε per km": epsilon, "loss in km": round(loss, 4), "d loss / d ε": round(price, 4)}
            for epsilon, loss, price in zip(epsilons, losses, prices, strict=True)
        ],
        selection=None,
    )
    return


@app.cell
def _(designs, epsilons):
    from optmech import plots

    picture = plots.tradeoff(designs, names=[f"ε = {epsilon}" for epsilon in epsilons])
    picture
    return (picture,)


if __name__ == "__main__":
    app.run()
