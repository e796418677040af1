"""The page in a browser: what it shows is what the design says."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optmech as om
from optmech.cli.main import main
from optmech.files import read_problem

Show = Callable[..., Any]
KM = om.distances.euclidean()
HOSTILE = (
    '<img src=x onerror="window.hit=1">',
    "</script><script>window.hit=1</script>",
    "&amp;",
    "'\"`${window.hit=1}",
    "\u2028plain",
)


@pytest.fixture(scope="module")
def montreal() -> om.Design:
    return om.solve(read_problem("montreal-small").problem, gap=1e-2)


@pytest.fixture(scope="module")
def small() -> om.Design:
    grid = om.Grid(3, 4, cell=(1.0, 2.0), unit="km")
    prior = om.Prior.from_counts(grid, [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8])
    constraints = [om.MetricPrivacy(0.7, KM), om.DistortionPrivacy(1.2, KM)]
    return om.solve(om.Problem(prior, KM, constraints=constraints, title="Twelve cells"))


def rounded(text: str) -> float:
    """The first number of a text as the page writes it."""
    found = re.search(r"[−\d.]+(e[−\d]+)?", text)
    assert found is not None
    return float(found[0].replace("−", "-"))


def test_montreal_shows_the_numbers_of_the_design(montreal: om.Design, show: Show) -> None:
    page = show(montreal)
    prior, distance = montreal.problem.prior, om.distances.haversine()
    mechanism = montreal.mechanism
    attack = om.attacks.optimal_attack(mechanism, prior, montreal.problem.constraints[0].distance)
    assert page.value("loss") == montreal.loss
    assert page.value("lower_bound") == montreal.lower_bound
    assert page.value("gap") == montreal.gap
    assert page.value("attack") == attack.error
    # to a few metres: all digits are in the element's title
    assert rounded(page.text("[data-field=loss]")) == float(f"{montreal.loss:.4g}")
    assert page.value("promised-0") == pytest.approx(np.log(2), rel=1e-15)
    assert page.value("measured-0") == om.measures.epsilon(mechanism, distance)
    checked = sum(check.inequalities for check in montreal.certificate.checks)
    assert f"all {checked:,} inequalities hold" in page.text("#verdict")
    (price,) = om.prices.of_constraints(montreal)
    assert page.value("price-epsilon") == price.rate
    assert "40 points on the globe" in page.text("#lead")
    page.assert_quiet()


def test_prices_at_zero_are_shown_or_said_to_be_unknown(show: Show) -> None:
    domain = om.Domain(range(2), [0.0, 1.0], "km")
    prior = om.Prior.uniform(domain)

    def shown(constraint: om.Constraint) -> tuple[object, str]:
        page = show(om.solve(om.Problem(prior, KM, constraints=[constraint])))
        return page.value("price-epsilon"), page.text("main")

    # loss 1 / (1 + e^ε), so that the rate at 0 is -1/4
    rate, text = shown(om.MetricPrivacy(0, KM))
    assert rate == pytest.approx(-0.25, rel=1e-6)
    assert "changes nothing" not in text
    equal = om.DistributionPrivacy(0, [([1, 0], [0, 1])], divergence="kl")
    text = shown(equal)[1]
    assert "The price of ε is not told by the certificate" in text


def test_a_chosen_secret_shows_its_row(montreal: om.Design, show: Show) -> None:
    page = show(montreal)
    matrix, loss = montreal.mechanism.matrix, montreal.problem.loss_matrix
    attack = om.attacks.optimal_attack(
        montreal.mechanism, montreal.problem.prior, om.distances.haversine()
    )
    for secret in (17, 31):
        page.choose("secret", secret)
        order = np.argsort(-matrix[secret], kind="stable")[:6]
        assert page.listed("secret-top") == [(str(o), matrix[secret, o]) for o in order]
        assert page.value("prior") == montreal.problem.prior.weights[secret]
        assert page.value("secret-loss") == (matrix * loss).sum(axis=1)[secret]
        assert page.value("secret-error") == attack.error_per_secret[secret]
        assert page.value("entry") == matrix[secret, int(page.text("#observable option:checked"))]
    page.assert_quiet()


def test_a_chosen_observable_shows_posterior_guess_and_error(
    montreal: om.Design, show: Show
) -> None:
    page = show(montreal)
    prior, mechanism = montreal.problem.prior, montreal.mechanism
    distances = om.distances.haversine()(prior.domain, prior.domain)
    for observable in (3, 22):
        page.choose("observable", observable)
        joint = prior.weights * mechanism.matrix[:, observable]
        belief = joint / joint.sum()
        order = np.argsort(-belief, kind="stable")[:6]
        shown = page.listed("observable-top")
        assert [name for name, _ in shown] == [str(s) for s in order]
        assert [value for _, value in shown] == pytest.approx(belief[order], rel=1e-12)
        costs = distances @ belief
        assert page.value("guess") == costs.argmin()
        assert page.value("guess-error") == pytest.approx(costs.min(), rel=1e-12)
        assert page.value("guess-right") == pytest.approx(belief[costs.argmin()], rel=1e-12)
        assert page.value("marginal") == pytest.approx(joint.sum(), rel=1e-12)
    page.assert_quiet()


def test_two_secrets_show_what_is_measured_and_allowed(montreal: om.Design, show: Show) -> None:
    page = show(montreal)
    matrix = montreal.mechanism.matrix
    page.choose("pair-a", 5)
    page.choose("pair-b", 29)
    used = matrix[5] > 0
    assert page.value("ratio") == pytest.approx(np.log(matrix[5, used] / matrix[29, used]).max())
    back = np.log(matrix[29, used] / matrix[5, used]).max()
    assert page.value("ratio-back") == pytest.approx(back)
    assert page.value("ratio-allowed") == montreal.problem.statement.log_ratio[5, 29]
    page.assert_quiet()


def test_what_epsilon_allows_is_a_factor_at_a_distance(small: om.Design, show: Show) -> None:
    """Cells of 1 x 2 km: from one corner to the other 3 columns and 2 rows are 5 km; ε = 0.7."""
    page = show(small)
    page.choose("pair-a", 0)
    page.choose("pair-b", 11)
    said = page.text("#pair-readout")
    assert "5 km (euclidean) apart" in said
    assert "ε = 0.7 per km (euclidean) allows a factor of 33.1" in said  # e^3.5 = 33.115
    measured = said.partition("by a factor of at most ")[2].split()[0].rstrip(".")
    assert 1 < float(measured) <= 33.12


def click(page: Any, selector: str, index: int) -> None:
    """Click on the middle of an element, as a person does."""
    from selenium.webdriver import ActionChains

    cell = page.js(
        "const c = document.querySelectorAll(`#${arguments[0]}`)[arguments[1]];"
        "c.scrollIntoView({block: 'center', behavior: 'instant'}); return c",
        selector,
        index,
    )
    ActionChains(page.browser).move_to_element(cell).click().perform()


def test_maps_are_chosen_from_by_mouse_and_keys(small: om.Design, show: Show) -> None:
    from selenium.webdriver import Keys

    page = show(small)
    click(page, "secret-chart .cell", 6)
    assert page.text("#secret option:checked") == "1,2"
    click(page, "observable-chart .cell", 9)
    assert page.text("#observable option:checked") == "2,1"
    svg = page.js("return document.querySelector('#secret-chart svg')")
    for key, label in ((Keys.ARROW_UP, "2,2"), (Keys.ARROW_LEFT, "2,1"), (Keys.ARROW_DOWN, "1,1")):
        svg.send_keys(key)
        assert page.text("#secret option:checked") == label
    label = page.js("return document.querySelector('#secret-chart svg').ariaLabel")
    assert "Secret 1,1" in label
    name = page.listed("secret-top")[0][0]
    click(page, "secret-top button", 0)
    assert page.text("#observable option:checked") == name
    page.assert_quiet()


def test_the_matrix_is_chosen_from(small: om.Design, show: Show) -> None:
    from selenium.webdriver import ActionChains

    page = show(small)
    canvas = page.js(
        "const c = document.querySelector('#matrix canvas');"
        "c.scrollIntoView({block: 'center', behavior: 'instant'}); return c"
    )
    box = canvas.size
    # entry (row 2, column 9) of 12 x 12, measured from the middle
    offset = [round((k + 0.5) / 12 * side - side / 2)
              for k, side in ((9, box["width"]), (2, box["height"]))]  # fmt: skip
    ActionChains(page.browser).move_to_element_with_offset(canvas, *offset).click().perform()
    assert page.text("#secret option:checked") == "0,2"
    assert page.text("#observable option:checked") == "2,1"
    assert page.value("entry") == small.mechanism.matrix[2, 9]
    page.assert_quiet()


def test_labels_are_text_whatever_is_in_them(show: Show) -> None:
    domain = om.Domain(HOSTILE, points=np.arange(10.0).reshape(5, 2) ** 1.5)
    stated = om.Problem(
        om.Prior.uniform(domain), KM, constraints=[om.MetricPrivacy(0.3, KM)], title=HOSTILE[1]
    )
    page = show([om.solve(stated)] * 2, [HOSTILE[0], HOSTILE[1]])
    assert page.js("return window.hit") is None
    assert page.text("h1") == HOSTILE[1]
    names = page.js("return [...document.getElementById('secret').options].map((o) => o.text)")
    assert names[:3] == list(HOSTILE[:3])
    assert {name for name, _ in page.listed("secret-top")} >= set(HOSTILE[:4])
    assert HOSTILE[0] in page.text("#frontier-table")
    # the page's own script and data, and no picture from anywhere
    assert page.js("return [document.scripts.length, document.images.length]") == [2, 0]
    page.assert_quiet()


def test_colours_follow_the_system_and_the_switch(small: om.Design, show: Show) -> None:
    page = show(small)
    seen = []
    for scheme in ("light", "dark"):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        page.browser.refresh()
        seen.append(page.js("return getComputedStyle(document.body).backgroundColor"))
    page.choose("theme", "light")
    seen.append(page.js("return getComputedStyle(document.body).backgroundColor"))
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert seen[0] == seen[2] != seen[1]


def test_a_phone_needs_no_scrolling_sideways(montreal: om.Design, show: Show) -> None:
    page = show(montreal)
    size = {"width": 375, "height": 800, "deviceScaleFactor": 2, "mobile": True}
    page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        wide = page.js("return document.documentElement.scrollWidth")
    finally:
        page.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert wide == 375


def test_several_designs_are_compared(show: Show) -> None:
    line = om.Domain.range(5, unit="years")
    stated = [
        om.Problem(om.Prior.uniform(line), KM, constraints=[om.MetricPrivacy(e, KM)])
        for e in (0.5, 1.0, 2.0)
    ]
    stated.append(
        om.Problem(om.Prior.uniform(line), KM, constraints=[om.DistortionPrivacy(9.0, KM)])
    )
    designs = [om.solve(problem) for problem in stated]
    page = show(designs[:3], ["half", "one", "two"])
    shown = page.js(
        "return [...document.querySelectorAll('#frontier-table tbody tr')].map((r) => "
        "r.querySelectorAll('[data-field=compared]')[1].dataset.value)"
    )
    assert [float(value) for value in shown] == [design.loss for design in designs[:3]]
    page.js(
        "document.querySelectorAll('#frontier-chart circle')[2].dispatchEvent(new Event('click'))"
    )
    assert page.value("loss") == designs[2].loss
    assert page.text("#design option:checked") == "two"
    mixed = show(designs, ["half", "one", "two", "never"])
    mixed.choose("design", 3)
    assert mixed.text("#verdict").startswith("Infeasible: ")
    assert designs[3].reason in mixed.text("#verdict")
    mixed.choose("design", 0)
    assert mixed.value("loss") == designs[0].loss
    mixed.assert_quiet()


def test_domains_without_a_map_and_other_observables(show: Show) -> None:
    names = om.Domain(["flu", "cold", "none"])
    hidden = om.observables.suppressible(names, "withheld")
    loss = om.losses.with_suppression(om.distances.hamming(), 0.4)
    stated = om.Problem(
        om.Prior(names, [1, 2, 5]), loss, hidden, constraints=[om.DifferentialPrivacy("ln 2")]
    )
    design = om.solve(stated)
    page = show(design)
    page.choose("secret", 1)
    row = dict(page.listed("secret-top"))
    assert row["withheld"] == design.mechanism.matrix[1, 3]
    page.choose("observable", 3)
    joint = design.problem.prior.weights * design.mechanism.matrix[:, 3]
    assert dict(page.listed("observable-top"))["none"] == pytest.approx(joint[2] / joint.sum())
    grid = om.Grid(4, 4, unit="km")
    coarse = om.observables.coarser(grid, 2, 2)
    stated = om.Problem(om.Prior.uniform(grid), KM, coarse, constraints=[om.MetricPrivacy(0.5, KM)])
    page = show(om.solve(stated))
    click(page, "observable-chart .cell", 15)
    assert page.text("#observable option:checked") == "1,1"
    page.assert_quiet()


def known(rows: int, columns: int) -> om.Design:
    """A known mechanism as if it had been designed: solving for so many secrets takes minutes."""
    from optmech.certificate import Bound, Multipliers
    from optmech.certificate.objective import Figures
    from optmech.designs.design import Certificate, Design
    from optmech.exact.numerators import Numerators

    grid = om.Grid(rows, columns, unit="km")
    stated = om.Problem(om.Prior.uniform(grid), KM)
    kernel = np.exp(-0.5 * KM(grid, grid))
    nan = float("nan")
    return Design(
        stated, Numerators.rounded(kernel), Figures(nan, nan, nan, nan, nan),
        Certificate((), Multipliers(), Bound(nan, nan)), "none", "", 0.0,
    )  # fmt: skip


def test_three_hundred_secrets_fit_into_ten_megabytes(show: Show, tmp_path: Path) -> None:
    design = known(15, 20)
    page = show(design)
    assert "64-bit" in page.text("#precision")
    page.choose("secret", 299)
    shown = page.listed("secret-top")
    assert shown[0] == ("14,19", design.mechanism.matrix[299, 299])
    assert (tmp_path / "report.html").stat().st_size < 10e6
    page.assert_quiet()


def test_a_thousand_secrets_still_open(show: Show, tmp_path: Path) -> None:
    large = known(25, 40)
    page = show(large)
    assert "32-bit" in page.text("#precision")
    page.choose("secret", 700)
    shown = page.listed("secret-top")
    matrix = large.mechanism.matrix[700]
    assert [value for _, value in shown] == pytest.approx(np.sort(matrix)[::-1][:6], rel=1e-5)
    assert (tmp_path / "report.html").stat().st_size < 15e6
    page.assert_quiet()


def test_the_same_design_gives_the_same_bytes(small: om.Design, tmp_path: Path) -> None:
    small.save(tmp_path / "design.json")
    for name in ("a.html", "b.html"):
        om.report(om.Design.load(tmp_path / "design.json"), tmp_path / name)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_the_page_names_no_address(small: om.Design, tmp_path: Path) -> None:
    om.report(small, tmp_path / "a.html")
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    addresses = set(re.findall(r"\w+://[^\"'\s]*", text))
    assert addresses == {"http://www.w3.org/2000/svg"}
    assert "default-src 'none'" in text


def test_the_command_writes_it(
    small: om.Design, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved, out = tmp_path / "design.json", tmp_path / "page.html"
    small.save(saved)
    assert main(["report", str(saved), str(saved), "-o", str(out)]) == 0
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert main(["report", str(saved), "-o", str(tmp_path / "page.pdf")]) == 2
    assert "ends in .html" in capsys.readouterr().err
    assert main(["report", str(saved), "-o", str(saved)]) == 2
    assert main(["report", str(tmp_path / "absent.json"), "-o", str(out)]) == 2


@pytest.mark.parametrize(
    ("designs", "names", "message"),
    [
        ([], None, "0 designs"),
        (["text"], None, "str is not a Design"),
        (None, ["a", "b"], "2 names for 1 designs"),
    ],
)
def test_what_cannot_be_shown_is_refused(
    small: om.Design, tmp_path: Path, designs: Any, names: Any, message: str
) -> None:
    with pytest.raises(om.ProblemError, match=message):
        om.report([small] if designs is None else designs, tmp_path / "a.html", names)
