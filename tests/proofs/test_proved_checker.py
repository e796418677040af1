"""The checker that Coq proved: it accepts what the audit accepts, and refuses what it refuses."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from proved import PROOFS, Judge, built, text_of, verdicts
from proved_mutations import all_texts, audited, judged_designs, judged_texts

import optmech as om
from optmech.errors import ProblemError
from optmech.files import read_problem

GALLERY = (
    "ages", "approximate", "bayes-leakage", "capacities", "coarser", "coupling", "differential",
    "distortion", "distribution", "grid-4x4", "grid-5x5-hamming", "home-out", "joint", "kept-rows",
    "least-leakage", "line-geometric", "male-female", "max-distortion", "medical-tree", "metric",
    "montreal-small", "paper-small", "policy-graph", "pufferfish", "road-network",
    "square-everywhere", "square-everywhere-joint", "support", "threshold", "unbiased",
    "worst-case",
)  # fmt: skip
UNCOVERED = {
    "divergence": "'divergence'", "renyi": "'divergence'", "mutual-information": "'information'",
}  # fmt: skip


def test_designs_of_the_gallery_are_accepted(judge: Judge, tmp_path: Path) -> None:
    paths = []
    for name in GALLERY:
        om.solve(read_problem(name).problem).save(tmp_path / f"{name}.json")
        assert not audited(tmp_path / f"{name}.json"), name
        paths.append(tmp_path / f"{name}.checked")
        paths[-1].write_text(text_of(tmp_path / f"{name}.json"))
    said = dict(zip(GALLERY, judge(paths), strict=True))
    assert set(said.values()) == {"accepted"}, said


@pytest.mark.parametrize("name", UNCOVERED)
def test_what_is_not_covered_is_refused_by_name(name: str, tmp_path: Path) -> None:
    om.solve(read_problem(name).problem).save(tmp_path / "d.json")
    with pytest.raises(
        ProblemError, match=f"does not cover a promise of the kind {UNCOVERED[name]}"
    ):
        text_of(tmp_path / "d.json")


def test_every_covered_kind_is_accepted(
    designs: dict[str, bytes], judge: Judge, tmp_path: Path
) -> None:
    paths = []
    for name, content in designs.items():
        (tmp_path / f"{name}.json").write_bytes(content)
        assert not audited(tmp_path / f"{name}.json"), name
        paths.append(tmp_path / f"{name}.checked")
        paths[-1].write_text(text_of(tmp_path / f"{name}.json"))
    said = dict(zip(designs, judge(paths), strict=True))
    assert set(said.values()) == {"accepted"}, said


# altered files
def test_altered_designs_are_refused_where_the_audit_refuses(
    designs: dict[str, bytes], judge: Judge, tmp_path: Path
) -> None:
    wrong, counts = judged_designs(designs, judge, tmp_path, 1000, 38)
    assert not wrong, "\n".join(wrong)
    assert counts["accepted"] >= 100, counts
    assert counts["refused"] >= 400, counts
    assert counts["no design"] <= 100, counts


def test_altered_texts_are_refused_where_a_second_reader_refuses(
    designs: dict[str, bytes], judge: Judge, tmp_path: Path
) -> None:
    """Malformed texts among them: the checker itself judges them."""
    wrong, counts = judged_texts(all_texts(tmp_path, designs), judge, tmp_path, 2000, 7)
    assert not wrong, "\n".join(wrong)
    assert counts["accepted"] >= 100, counts
    assert counts["refused"] >= 200, counts
    assert counts["not read"] >= 200, counts


def test_the_theorems_stand_on_the_axioms_of_the_reals(build: Path) -> None:
    """``Print Assumptions``: what a proof that was left out, or an axiom, would appear in."""
    stated, _, rest = (build / "assumptions.txt").read_text().partition("Axioms:\n")
    names = {line.split(" :")[0] for line in rest.splitlines() if line[:1].strip()}
    assert names == {
        "ClassicalDedekindReals.sig_not_dec", "ClassicalDedekindReals.sig_forall_dec",
        "FunctionalExtensionality.functional_extensionality_dep", "Classical_Prop.classic",
    }  # fmt: skip
    for theorem in (
        "forall f : file, check f = true -> holds f",
        "forall f : refutation, refute f = true -> holds_refutation f",
        "forall f : everywhere_file, check_everywhere f = true -> holds_everywhere f",
    ):
        assert theorem in " ".join(stated.split())
    last = (PROOFS / "Theorems.v").read_text().split()
    assert last[-3:] == ["Print", "Assumptions", "all."]
    assert "all := (correct, refuted, everywhere)." in " ".join(last)


def test_a_name_of_an_axiom_without_a_module_is_seen() -> None:
    """The names that the build compares are found by two commands of the Makefile."""
    makefile = (PROOFS / "Makefile").read_text()
    begin = makefile.index("sed -n '/^Axioms:/")
    command = makefile[begin : makefile.index("| sort", begin)]
    command = command.replace("$$", "$").replace("$(BUILD)/assumptions.new", "").replace("\\\n", "")
    given = "a : b\nAxioms:\nfree : 0 < 0\nlong_name\n  : forall x,\n    x\nA.b : c\n"
    done = subprocess.run(
        ["sh", "-c", command], input=given, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["free", "long_name", "A.b"]


def test_an_unfinished_proof_is_no_build(build: Path, tmp_path: Path) -> None:
    for path in PROOFS.iterdir():
        if path.is_file():
            shutil.copy(path, tmp_path)
    source = (tmp_path / "Exponential.v").read_text()
    (tmp_path / "Exponential.v").write_text(source + "\nAxiom free : 0 < 0.\n")
    done = subprocess.run(
        ["make", "-C", str(tmp_path), "proved"], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "Axiom free" in done.stdout


def test_the_checker_without_a_library_says_the_same(
    designs: dict[str, bytes], build: Path, tmp_path: Path
) -> None:
    """With Coq's own whole numbers; of the smallest designs, as it is slow."""
    plain = built("checker-plain", build)
    paths = []
    for name in ("nothing", "log", "worst"):
        (tmp_path / "d.json").write_bytes(designs[name])
        text = text_of(tmp_path / "d.json")
        lines = text.splitlines()
        least = next(k for k, line in enumerate(lines) if line.startswith("least "))
        _, top, bottom = lines[least].split()
        false = [*lines[:least], f"least {int(top) * 2 + 1} {bottom}", *lines[least + 1 :], ""]
        for end, own in (("", text), (" false", "\n".join(false))):
            paths.append(tmp_path / f"{name}{end}.checked")
            paths[-1].write_text(own)
    said = verdicts(plain, paths)
    assert [word == "accepted" for word in said] == [True, False] * 3, said
    assert said == verdicts(build / "checker", paths)
