"""Results of every sort: one table of formats, which is the audit's, and one way to files."""

from __future__ import annotations

import math
import re
import tomllib
from pathlib import Path

import optmech_audit as audit
import pytest
from optmech_audit import document

import optmech as om
from optmech.base.extensions import CODECS, extension
from optmech.certificate.proved import Proved
from optmech.reading.sealed import FORMATS


def test_the_audit_reads_what_is_written_and_nothing_else() -> None:
    assert set(FORMATS) == {document.FORMAT, document.FAMILY, document.NOISE}
    listed = {each.listed: each.name for each in FORMATS.values() if each.listed}
    assert listed == document.LISTED


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_a_reader_and_a_writer(name: str) -> None:
    module = extension(CODECS, name)
    assert callable(module.encode)
    assert callable(module.decode)
    assert name in Proved.formats


def every_sort() -> dict[str, Proved]:
    domain = om.Domain.range(3)
    distance = [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]
    stated = om.distances.euclidean()
    plain = om.Domain([0, 1, 2], [[0.0], [1.0], [2.0]])
    private = [om.MetricPrivacy(1, stated)]
    return {
        "design": om.solve(om.Problem(om.Prior.uniform(plain), stated, constraints=private)),
        "infeasible": om.solve(
            om.Problem(om.Prior.uniform(plain), stated, constraints=[*private, om.LossBound(1e-3)])
        ),
        "noise": om.noise.optimal(1, gap=1e-3),
        "rényi": om.noise.rdp((2, 1), gap=1e-2),
        "real": om.noise.real(1, "1e-3", cells=4),
        "pair": om.noise.for_pairs(2, 0.01, gap=0.5),
        "coupling": om.mechanisms.coupling_design(
            [[1, 1, 1], [1, 2, 3]], [1, 1, 2], distance, secrets=domain
        ),
        "target": om.mechanisms.optimal_target([[1, 0, 2], [0, 1, 1]], distance, "ln 2"),
    }


@pytest.fixture(scope="module")
def sorts() -> dict[str, Proved]:
    return every_sort()


@pytest.mark.parametrize("ending", [".json", ".json.gz"])
def test_every_sort_comes_back_from_its_file(
    sorts: dict[str, Proved], tmp_path: Path, ending: str
) -> None:
    for name, made in sorts.items():
        path = tmp_path / (name + ending)
        made.save(path)
        assert om.check(path).passed, name
        for again in (om.load(path), type(made).load(path)):
            assert type(again) is type(made)
            assert (again.status, again.seconds) == (made.status, made.seconds)
            for mine, theirs in zip(made.figures[:4], again.figures[:4], strict=True):
                assert mine == theirs or (math.isnan(mine) and math.isnan(theirs))
            assert again.document() == made.document()
        if ending == ".json":
            assert audit.main([str(path)]) == 0


def test_every_sort_is_told_in_a_line_and_in_figures(sorts: dict[str, Proved]) -> None:
    for name, made in sorts.items():
        assert repr(made).startswith(type(made).__name__ + "("), name
        assert made.status in repr(made)
        assert len(repr(made)) < 400
        assert "<table>" in made._repr_html_()
        summary = made.summary()
        assert summary["status"] == made.status
        assert {"loss", "lower_bound", "gap", "verified", "seconds"} <= set(summary)


def test_one_sort_is_not_read_as_another(sorts: dict[str, Proved], tmp_path: Path) -> None:
    for name, made in sorts.items():
        made.save(tmp_path / name)
        for other in {type(each) for each in sorts.values()} - {type(made)}:
            with pytest.raises(om.ProblemError):
                other.load(tmp_path / name)


def test_the_page_of_promises_lists_every_format_and_python() -> None:
    """What stands in the source, and what packed files and pyproject say."""
    root = Path(__file__).resolve().parents[2]
    page = root / "docs" / "promises.md"
    if not page.is_file():
        pytest.skip("not a checkout")
    text = page.read_text(encoding="utf-8")
    form = re.compile(r"optmech-[a-z-]+/\d+")
    sources = [path.read_text(encoding="utf-8") for path in (root / "optmech").rglob("*.py")]
    sources += [p.read_text("utf-8") for p in root.glob("packages/*/optmech_*/**/*.py")]
    written = {found for source in sources for found in re.findall(rf'"({form.pattern})"', source)}
    assert len(written) > 8
    assert set(form.findall(text)) == written
    assert written >= {*FORMATS, *(each.listed for each in FORMATS.values() if each.listed)}
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    known = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    assert f"today {known[0]} to {known[-1]}." in text
    assert project["requires-python"] == f">={known[0]}"
