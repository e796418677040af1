"""Results of every sort: figures, the status that follows from them, and files that hold all that
it takes to prove them again; what files of every kind claim, held against what is proved."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self, cast

from optmech.base.extensions import CODECS, extension
from optmech.base.shown import Shown, card
from optmech.base.storage import write_atomically
from optmech.certificate.check import Check, CheckReport
from optmech.certificate.objective import Figures, relative_gap, status_of
from optmech.errors import ProblemError, VerificationError
from optmech.exact.codec import Codec, amount, one_of, record
from optmech.exact.number import from_above, from_below, rounded_down, rounded_up
from optmech.reading.sealed import (
    FORMATS,
    compressed,
    decoding,
    parse_sealed,
    read_sealed,
    written,
)
from optmech.spaces.arguments import checked_arguments

Body = dict[str, Any]
CLAIMS: dict[str, Codec[Any]] = {
    "status": one_of("status", ("optimal", "feasible")),
    "loss": amount("loss"),
    "lower_bound": amount("lower_bound"),
}
"""What files claim, one entry for all sorts of results."""
_ENVELOPE = ("digest", "format", "claims", "seconds")


class Proved(Shown):
    """A result with its proof."""

    formats: ClassVar[tuple[str, ...]] = tuple(FORMATS)
    """What its files may be: the first is written."""
    _inner: ClassVar[frozenset[str]] = frozenset(("formats", "of_body", "of_document", "figures"))
    """What files and checks are made with, which completion does not show."""
    figures: Figures
    seconds: float

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in self._inner]

    @property
    def loss(self) -> float:
        """The loss, rounded up."""
        return self.figures.loss

    @property
    def lower_bound(self) -> float:
        """What is proved about the loss of everything that it is compared with, rounded down."""
        return self.figures.lower_bound

    @property
    def gap(self) -> float:
        """The relative difference to what is proved."""
        return self.figures.gap

    @property
    def status(self) -> Literal["optimal", "feasible", "infeasible"]:
        """ "optimal" where the certified gap is at most 1e-6, whatever gap was asked for, else
        "feasible"; "infeasible" where nothing is."""
        return status_of(self.gap)

    def document(self) -> bytes:
        """The content of a file; raises ProblemError where something of it cannot be written."""
        module = extension(CODECS, self.formats[0])
        try:
            return written(module.encode(self))
        except (TypeError, ValueError) as error:
            # fields of constraints of other packages
            raise ProblemError(f"cannot be written to a file: {error}") from error

    @checked_arguments
    def save(self, path: str | Path) -> None:
        """Write one JSON file, atomically, compressed where its name ends in .gz; raises
        ProblemError where labels cannot be written or the path cannot."""
        write_atomically(path, compressed(path, self.document()))

    @classmethod
    @checked_arguments
    def load(cls, path: str | Path) -> Self:
        """Read what ``save`` wrote and prove it again. Raises ProblemError where the file cannot be
        read or holds something else, VerificationError where it was altered or does not hold what
        it claims."""
        return cls.of_body(read_sealed(path, cls.formats), str(path))

    @classmethod
    def of_document(cls, content: bytes, where: str) -> Self:
        """Read a file's content and prove it again, as ``load`` does; messages name ``where``."""
        return cls.of_body(parse_sealed(content, where, cls.formats), where)

    @classmethod
    def of_body(cls, body: Body, where: str) -> Self:
        """Read the object that a file holds and prove it again, as ``load`` does.

        Examples
        --------
        >>> from optmech.reading.sealed import parse_sealed
        >>> coin = om.mechanisms.optimal_target([[1, 0], [0, 1]], [[0, 1], [1, 0]])
        >>> body = parse_sealed(coin.document(), "memory", coin.formats)
        >>> type(coin).of_body(body, "memory").losses == coin.losses
        True
        """
        found, report = examined(body, where)
        if not report.passed:
            remedy = FORMATS[body["format"]].remedy
            raise VerificationError(report.faults[0], where=where, remedy=remedy)
        if not isinstance(found, cls):
            raise ProblemError(f"holds {found!r}", where=where, remedy="Load it with om.load")
        return found


def examined(body: Body, where: str) -> tuple[Proved, CheckReport]:
    """What a file's object holds, and the verdict on every claim of it. Raises VerificationError
    where it is malformed."""
    codec = extension(CODECS, body["format"])
    with decoding(where, FORMATS[body["format"]].remedy):
        found: tuple[Proved, CheckReport] = codec.decode(body, where)
        return found


class ProvedLoss(Proved, ABC):
    """An exact loss with an exact lower bound, of which all figures are.

    Examples
    --------
    >>> design = om.noise.optimal(epsilon="ln 2")
    >>> design.gap_to(2.0, 1.0), design.figures_of(design.lower_bound).gap == design.gap
    (0.5, True)
    >>> design.enclosed({})["format"] == design.formats[0]
    True
    """

    heading: ClassVar[str]
    claimed: ClassVar[Codec[Any]] = record(dict, "claims", **CLAIMS)
    """What its files claim, to be computed again by their reader."""

    @property
    @abstractmethod
    def promise(self) -> str:
        """The promise in words."""

    @property
    @abstractmethod
    def measured(self) -> str:
        """The loss in words."""

    @property
    @abstractmethod
    def exact_loss(self) -> Fraction:
        """The expected loss, exactly or rounded up a little."""

    @property
    @abstractmethod
    def exact_bound(self) -> Fraction:
        """The lower bound that is proved, exactly; 0 without any."""

    @property
    @abstractmethod
    def checks(self) -> Iterable[Check]:
        """What is decided of it."""

    @property
    @abstractmethod
    def caveats(self) -> tuple[str, ...]:
        """What a verdict on its file is about, and what is the file's own word."""

    @cached_property
    def figures(self) -> Figures:  # type: ignore[override]
        """The figures, rounded to the safe side."""
        return self.figures_of(rounded_down(self.exact_bound) + 0.0)

    def figures_of(self, bound: float) -> Figures:
        """The figures where no more than this bound is claimed."""
        loss = rounded_up(self.exact_loss)
        return Figures(loss, bound, loss, bound, self.gap_to(loss, bound))

    def gap_to(self, loss: float, bound: float) -> float:
        """The relative difference of a loss and a bound."""
        return relative_gap(loss, bound)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.promise}, {self.measured} {self.loss:.6g}, "
            f"lower bound {from_below(self.lower_bound)}, gap {from_above(self.gap, 2)}, "
            f"{self.status})"
        )

    def _repr_html_(self) -> str:
        facts: list[tuple[str, object]] = [
            ("promise", self.promise),
            (self.measured, f"{self.loss:.6g}"),
            ("lower bound", from_below(self.lower_bound)),
            ("gap", from_above(self.gap, 2)),
        ]
        return card(self.heading, facts)

    def enclosed(self, content: Body) -> Body:
        """A file's object with this content."""
        claims = self.claimed.write(self)
        head = {"format": self.formats[0], **content}
        return {**head, "claims": claims, "seconds": self.seconds}


def opened(codec: Codec[Any], body: Body, where: str) -> tuple[Proved, CheckReport]:
    """What a file's object holds, its content read by a codec, and the verdict."""
    content = {name: value for name, value in body.items() if name not in _ENVELOPE}
    seconds = amount("seconds").read(body["seconds"])
    found = cast(ProvedLoss, replace(codec.read(content), seconds=seconds))
    said = found.claimed.read(body["claims"])
    bound = said["lower_bound"]
    equal = [
        Claim(name, value, getattr(found, name))
        for name, value in said.items()
        if name not in ("status", "lower_bound")
    ]
    report = report_on(
        where,
        tuple(found.checks),
        [*equal, bounded("lower_bound", bound, found.lower_bound)],
        said["status"],
        found.figures_of(bound),
        notes=found.caveats,
    )
    return found, report


class Claim(NamedTuple):
    """One entry of a file, and what its numbers prove."""

    name: str
    said: object
    proved: object
    is_enough: bool = False
    """Whether what is said claims less than what is proved: no fault."""

    @property
    def holds(self) -> bool:
        """Whether the file claims nothing that is not so."""
        return self.said == self.proved or self.is_enough


def bounded(name: str, said: float, proved: float, sign: float = 1.0) -> Claim:
    """A lower bound; an upper one where ``sign`` is -1. A file may claim less than it proves."""
    return Claim(name, said, proved, sign * said <= sign * proved)


def report_on(
    path: str,
    checks: tuple[Check, ...],
    claims: Sequence[Claim],
    status: object,
    figures: Figures,
    *,
    notes: tuple[str, ...],
    total_gap: float | None = None,
    unit: str = "",
) -> CheckReport:
    """The verdict on a file with these figures, which follow from what it claims where that holds.
    Its status has to be the one of its gap."""
    proper = status_of(figures.gap)
    faults = [f"{check.name}: {check.detail}" for check in checks if not check.passed]
    faults += [
        f"{claim.name} is {claim.said!r} in the file and {claim.proved!r} recomputed"
        for claim in (*claims, Claim("the status", status, proper))
        if not claim.holds
    ]
    return CheckReport(
        path=path,
        status="failed" if faults else proper,
        checks=checks,
        objective=figures.objective,
        bound=figures.bound,
        gap=figures.gap,
        loss=figures.loss,
        lower_bound=figures.lower_bound,
        faults=tuple(faults),
        notes=notes,
        total_gap=total_gap,
        unit=unit,
    )
