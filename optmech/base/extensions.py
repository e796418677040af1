"""What other distributions add to this one, found by entry points. A distribution states in its
``pyproject.toml`` under

* ``optmech.names`` names of ``om`` and of its namespaces, such as ``noise`` or ``plots.noise``;
* ``optmech.commands`` commands, and the module of each, as those of ``optmech.cli.commands``;
* ``optmech.formats`` formats of sealed documents, and the module that reads and writes each;
* ``optmech.tasks`` kinds of files that ask for something else, and the module that reads them:
  its ``read`` gives a file with its ``task``, and ``problems`` in its package is the gallery's;
* ``optmech.files`` kinds of files that are no sealed documents, and the module that reads them:
  its ``described`` says what one is; of ``packed`` mechanisms it also loads, checks and samples
  them, and makes what a page samples; of a ``run`` it finds the designs;
  what is ``checked`` it writes;
* ``optmech.measures`` what else can be measured of a mechanism, an option of that name, and the
  module with its ``ARGUMENTS`` and what ``measured`` it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optmech.errors import ProblemError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

NAMES, COMMANDS, CODECS = "optmech.names", "optmech.commands", "optmech.formats"
TASKS, FILES, MEASURES = "optmech.tasks", "optmech.files", "optmech.measures"

OWNERS: dict[str, dict[str, tuple[str, ...]]] = {
    "optmech-devices": {
        NAMES: ("devices",),
        COMMANDS: ("client", "pack", "protect", "statement"),
        FILES: ("ledger", "packed"),
        MEASURES: ("averaging", "crossings"),
    },
    "optmech-leakage": {
        NAMES: ("leakage", "plots.compared", "redesign"),
        COMMANDS: ("compare", "redesign"),
        MEASURES: ("leakage",),
    },
    "optmech-noise": {
        NAMES: (
            "noise",
            "exchange.noise_to_dp_accounting",
            "exchange.noise_to_opendp",
            "exchange.noise_to_scipy",
            "exchange.write_noise_table",
        ),
        COMMANDS: ("noise",),
        CODECS: ("optmech-noise/1",),
    },
    "optmech-surveys": {NAMES: ("estimate", "surveys"), COMMANDS: ("estimate", "plan-survey")},
    "optmech-sweeps": {
        NAMES: (
            "Comparison",
            "SweepResult",
            "compare",
            "frontier",
            "mechanisms.dense_areas",
            "mechanisms.known",
            "mechanisms.offset_snapped",
            "mechanisms.rounded_degrees",
            "mechanisms.snapped",
            "sweep",
        ),
        COMMANDS: ("compare-coarsening", "mechanism", "sweep"),
        FILES: ("run",),
    },
    "optmech-traces": {NAMES: ("traces",), COMMANDS: ("trace",), TASKS: ("trace",)},
    "optmech-verified": {FILES: ("checked",)},
}
"""Who has what, to be named where it is not installed."""


@cache
def _installed() -> Any:
    """Of all groups: every distribution is read for each question, however small."""
    from importlib.metadata import entry_points

    return entry_points()


@cache
def added(group: str) -> dict[str, EntryPoint]:
    """What is installed of a group, by name."""
    return {entry.name: entry for entry in _installed().select(group=group)}


def extension(group: str, name: str) -> Any:
    """The object of a name. Raises ProblemError, with the command that installs it, where it is
    known and not installed; LookupError where nobody has it."""
    if name in added(group):
        return added(group)[name].load()
    if owner := next((o for o, has in OWNERS.items() if name in has.get(group, ())), ""):
        raise ProblemError(
            f"is {'read by' if group == FILES else 'in'} {owner}, which is not installed",
            where=name,
            remedy=f"In a clone of optmech run pip install ./packages/{owner.partition('-')[2]}",
        )
    raise LookupError(name)


def installed(group: str, name: str) -> Any:
    """The object of a name; None where it is not installed."""
    return extension(group, name) if name in added(group) else None


def gallery_of(kind: str) -> Path:
    """The folder with the files of a kind of task: ``problems`` in the package of its module, which
    is not imported for it."""
    from importlib.util import find_spec

    spec = find_spec(added(TASKS)[kind].module.partition(".")[0])
    (home,) = (spec and spec.submodule_search_locations) or ("",)
    return Path(home) / "problems"
