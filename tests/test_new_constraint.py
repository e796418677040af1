"""The worked example of CONTRIBUTING.md: a kind of constraint in one file, with its twins."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "CONTRIBUTING.md"
_FILE = re.compile(r"^`([\w./]+)`:\n\n```\w+\n(.*?)^```", re.S | re.M)
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.S | re.M)
KIND = "optmech/problem/constraints/partition.py"
PROBLEM = "problems/partition.toml"

pytestmark = pytest.mark.skipif(
    not PAGE.is_file(), reason="CONTRIBUTING.md is not beside the tests"
)


def example() -> tuple[dict[str, str], str, list[str]]:
    """The files by their names, the block of Python and the lines for the shell."""
    page = PAGE.read_text(encoding="utf-8")
    section = page.split("\n## A new constraint")[1].split("\n## ")[0]
    rest = _BLOCK.findall(_FILE.sub("", section))
    (python,) = (block for language, block in rest if language == "python")
    (shell,) = (block for language, block in rest if language == "sh")
    return dict(_FILE.findall(section)), python, shell.splitlines()


def run(folder: Path, *words: str, path: Path = ROOT) -> subprocess.CompletedProcess[str]:
    # both: the package that is tested, and whatever was put into the folder
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([*map(str, (folder, folder / "packages" / "audit", path))]),
    }
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


def command(line: str) -> list[str]:
    words = line.split()
    return ["-m", *words] if words[0] == "optmech" else words[1:]


def installed(folder: Path, source: str) -> None:
    """The kind as another package would have it, as pip leaves it."""
    (folder / "wards.py").write_text(source, encoding="utf-8")
    about = folder / "wards-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: wards\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[optmech.constraints]\npartition_privacy = wards\n")


def test_a_kind_in_one_file_with_its_twins(tmp_path: Path) -> None:
    files, python, lines = example()
    assert list(files) == [
        KIND,
        "packages/audit/optmech_audit/constraints.py",
        "tests/oracle.py",
        PROBLEM,
    ]
    shutil.copytree(ROOT / "optmech", tmp_path / "optmech", ignore=shutil.ignore_patterns("__py*"))
    for folder in ("packages/audit/optmech_audit", "problems", "solvers"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "tests").mkdir()
    shutil.copy(ROOT / "tests" / "oracle.py", tmp_path / "tests")
    end = '\n\nif __name__ == "__main__":'
    for name, content in files.items():
        path = tmp_path / name
        before, found, after = path.read_text().partition(end) if path.exists() else ("", "", "")
        path.write_text(f"{before}\n\n{content}{found}{after}", encoding="utf-8")

    done = run(tmp_path, "-c", python)
    assert (done.stdout, done.stderr) == ("0.250000\n", "")
    said = {}
    for line in lines:
        done = run(tmp_path, *command(line))
        assert done.returncode == 0, line + done.stdout + done.stderr
        said[line.split()[1]] = done.stdout
    assert "partition privacy: ε = ln 3 within each of 2 blocks" in said["solve"]
    assert re.search(r"partition privacy, epsilon +at most 1\.09861\d* +1\.0986", said["measure"])
    assert "everything that the file claims holds" in said["-P"]
    assert " = ln 3 within each of 2 blocks" in (tmp_path / "wards.html").read_text()

    oracle = (
        "import sys; sys.path.insert(0, 'tests'); import oracle, optmech as om;"
        "print(f'{oracle.optimum(om.load_problem(\"partition\")):.6f}')"
    )
    assert run(tmp_path, "-c", oracle).stdout == "0.250000\n"


def test_a_kind_of_another_package(tmp_path: Path) -> None:
    files, _, _ = example()
    (tmp_path / "wards.toml").write_text(files[PROBLEM], encoding="utf-8")
    solve = ("-m", "optmech", "solve", "wards.toml", "-o", "wards.json")
    check = ("-m", "optmech", "check", "wards.json")
    without = run(tmp_path, *solve)
    assert without.returncode == 2
    assert "constraints[0].kind: 'partition_privacy' is unknown" in without.stderr

    installed(tmp_path, files[KIND])
    done = run(tmp_path, *solve)
    assert done.returncode == 0, done.stderr
    assert run(tmp_path, *check).returncode == 0
    refused = run(tmp_path, "-m", "optmech_audit", "wards.json")
    assert refused.returncode == 1
    assert "partition_privacy" in refused.stdout

    shutil.rmtree(tmp_path / "wards-1.0.dist-info")
    unknown = run(tmp_path, *check)
    assert unknown.returncode == 1
    assert "'partition_privacy' is no constraint" in unknown.stdout + unknown.stderr
    assert "Traceback" not in unknown.stderr


_RETURNED = (
    "        yield Ratio(index, self.epsilon, np.where(self.together(space), 1.0, np.inf))\n"
)


@pytest.mark.parametrize(
    ("families", "status", "said"),
    [
        # equal rows satisfy every ratio of at least one, and none below
        ("yield Ratio(index, self.epsilon, -np.ones((4, 4)))", 1, "distance cannot be meant"),
        (
            "yield Ratio(index, self.epsilon, np.full((4, 4), np.nan))",
            1,
            "distance cannot be meant",
        ),
        ("yield Ratio(index, self.epsilon, np.ones((2, 2)))", 1, "distance cannot be meant"),
        (
            "yield Ratio(1, self.epsilon, np.ones((4, 4)))",
            2,
            "leads to a Ratio, which is no family",
        ),
        ("yield 'a promise'", 2, "leads to a str, which is no family"),
        ("return None", 2, "leads to a NoneType, which is no family"),
        ("return iter(())", 0, "constraints[0] constrains nothing: it leads to no inequality"),
        ("raise ValueError('no')", 70, "This is a bug in optmech or wards"),
    ],
)
def test_a_kind_whose_families_say_nothing_or_something_else(
    tmp_path: Path, families: str, status: int, said: str
) -> None:
    files, _, _ = example()
    assert _RETURNED in files[KIND]
    (tmp_path / "wards.toml").write_text(files[PROBLEM], encoding="utf-8")
    installed(tmp_path, files[KIND].replace(_RETURNED, f"        {families}\n"))
    done = run(tmp_path, "-m", "optmech", "solve", "wards.toml", "-o", "wards.json")
    assert done.returncode == status, done.stderr
    assert said in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / "wards.json").exists() == (status == 0)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("raise SystemExit(3)", "SystemExit 3"),
        ("import nothing_of_the_sort", "No module named 'nothing_of_the_sort'"),
        ("def (", "SyntaxError"),
    ],
)
def test_a_package_that_cannot_be_imported(tmp_path: Path, source: str, said: str) -> None:
    files, _, _ = example()
    (tmp_path / "wards.toml").write_text(files[PROBLEM], encoding="utf-8")
    installed(tmp_path, source)
    for words in (("solve", "wards.toml"), ("schema",)):
        done = run(tmp_path, "-m", "optmech", *words)
        assert done.returncode == 2
        assert "constraint 'partition_privacy': wards of an installed package" in done.stderr
        assert said in done.stderr
    if source == "def (":
        # whatever is wrong with it
        assert run(tmp_path, "-m", "optmech", "solve", "support").returncode == 0


@pytest.mark.parametrize(
    ("plain", "said"),
    [
        ("None", "is written as NoneType and not as a table"),
        ("{'blocks': object()}", "cannot be written to a file"),
        ("{'epsilon': float('nan')}", "cannot be written to a file"),
    ],
)
def test_a_kind_that_cannot_be_written(tmp_path: Path, plain: str, said: str) -> None:
    files, _, _ = example()
    (tmp_path / "wards.toml").write_text(files[PROBLEM], encoding="utf-8")
    installed(tmp_path, files[KIND] + f"\n\nPartitionPrivacy.plain = lambda self, space: {plain}\n")
    done = run(tmp_path, "-m", "optmech", "solve", "wards.toml", "-o", "wards.json")
    assert done.returncode == 2
    assert said in done.stderr
    assert not (tmp_path / "wards.json").exists()


@pytest.mark.parametrize(
    ("cut", "said"),
    [
        (("    def promise(", "    def promised("), "has no promise"),
        (("fields.FIELDS[texts]", "unused"), "lacks the converter of PartitionPrivacy.blocks"),
        (('"partition_privacy"', '"support"'), "two constraints are called 'support'"),
        (("@record\n", ""), "is no dataclass"),
    ],
)  # fmt: skip
def test_a_kind_that_lacks_a_part_fails_when_it_is_imported(
    tmp_path: Path, cut: tuple[str, str], said: str
) -> None:
    files, _, _ = example()
    assert cut[0] in files[KIND]
    (tmp_path / "wards.py").write_text(files[KIND].replace(*cut), encoding="utf-8")
    done = run(tmp_path, "-c", "import wards")
    assert done.returncode == 1
    assert said in done.stderr.splitlines()[-1]
