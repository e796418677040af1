"""What reports have cost so far: plainly, by the rows that were used, and composed.

A user's trajectory is compared with every other one that makes as many draws and is, at each of
them, at most ``radius`` away. After draws at s_1, ..., s_n the log-likelihood ratio of the two is

* plainly at most n times the largest that any draw may cost, whatever the places were;
* at most Σ_k max_{s' near s_k} max_o |ln P[s_k,o] / P[s',o]|, by the rows that were used;
* up to δ at most Σ_k D_α + ln((α-1)/α) - (ln δ + ln α)/(α-1), D_α being the largest Rényi
  divergence of the row of s_k and one near it, at one order α that is fixed before the first draw
  (a Rényi filter: Feldman and Zrnic, NeurIPS 2021; the conversion is proposition 12 of Canonne,
  Kamath and Steinke 2020), or the figure before where that is less.

All three hold where later places depend on earlier reports; docs/theory/budgets.md, "What many
reports cost", has the proofs.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from optmech.base.lock import Mutex, locked
from optmech.base.read_only import Kept
from optmech.base.storage import descriptor_of, refuse_unwritable, write_atomically
from optmech.errors import ProblemError
from optmech.exact.arguments import one_of, probability, truth, whole
from optmech.exact.number import Number, parse_exact
from optmech.reading.bounded import read_bytes
from optmech.reading.sealed import distinct
from optmech.spaces.arguments import checked_arguments, kind
from optmech_devices.packed.charges import (
    MOST_CHARGED,
    MOST_DRAWS,
    Spent,
    State,
    best_order,
    decimal,
    eighths,
    limit,
    no_ledger,
    tail,
    written,
)
from optmech_devices.packed.costs import Costs, charged
from optmech_devices.packed.earth import Earth
from optmech_devices.packed.mechanism import PackedMechanism
from optmech_devices.packed.reach import BETWEEN

FALL_BACKS = ("refuse", "repeat")
_MOST_BYTES = 2**24


@kind("Make one with om.devices.Ledger(mechanism, epsilon, radius)")
class Ledger(Kept):
    """Draws of a packed mechanism and what they add up to; safe between threads.

    A mechanism for every point, or for the whole earth, is charged alike wherever it draws:
    ε · (radius + 2 · snap).

    Parameters
    ----------
    epsilon:
        The rate that is charged, per unit of distance where the file's ε is. None for the largest
        that the packed file states; less than that is refused.
    radius:
        Up to which distance positions are to be hard to tell apart at every draw: in the unit of
        the places' coordinates, in km on the globe; by default 1, so that figures are those of two
        positions one unit apart, as a budget of ``om.protect`` is.
    budget:
        The largest figure that may be reached; None for no limit. It counts as the decimal of at
        most fifteen digits next to it, and every charge has nine digits, rounded up:
        N · ``per_draw`` is exactly N draws by ``"plain"``.
    delta:
        Of the composed figure.
    by:
        Which figure the budget limits: ``"plain"``, whose refusals depend on the number of draws
        only, ``"rows"`` or ``"composed"``, which go further, and whose refusals say something of
        the places that were visited.
    fall_back:
        What happens beyond the budget: ``"refuse"`` (no report) or ``"repeat"`` (the report
        before, which costs nothing).
    between:
        ``"positions"``: a report is about a position of the region, and its draw is charged for
        every place that a position of the region within ``radius`` of it may belong to, as over a
        cell's edge. One outside, which a file may have taken to the nearest place, counts as the
        position that it is taken to, which on the globe may be further from another's than they
        are apart. ``"places"``: the places are themselves what is hidden (ages, stations), and
        those at most ``radius`` away are charged for. Without coordinates all places are.
    order:
        The Rényi order α of the composed figure, 1 and a number of eighths; None for what suits
        budget, δ and the charge of a draw. It is fixed from then on, and kept with the draws.

    Raises
    ------
    ProblemError
        On bad arguments, an ε below the file's, a file that states none where none is given, and a
        radius between places that leaves one of them alone.
    VerificationError
        Where the packed rows of two places that are charged for differ by more than the charge: a
        file that does not keep what it states, or states it for other distances.

    Examples
    --------
    >>> cells = om.Grid(2, 2, unit="km")
    >>> km = om.distances.euclidean()
    >>> problem = om.Problem(om.Prior.uniform(cells), km, constraints=[om.MetricPrivacy("1/2", km)])
    >>> packed = om.pack(om.solve(problem), "cells.omm")
    >>> ledger = om.devices.Ledger(packed, None, radius=1, budget=5)
    >>> allowed = 0
    >>> while ledger.charge((0, 0)):
    ...     allowed += 1
    >>> allowed, ledger.plain <= 5
    (7, True)
    >>> ledger.allows((0, 0))  # nothing more
    False
    >>> om.devices.Ledger(packed, budget=5)  # within one unit
    Ledger(0 draws; plain 0 of 5 spent, 0.707106782 a draw; within 1 km)
    >>> ledger.enter((0, 0), times=2)  # draws that were made elsewhere count all the same
    >>> state = ledger.to_dict()
    >>> again = om.devices.Ledger(packed, None, radius=1, budget=5)
    >>> again.restore(state)
    >>> again.plain == ledger.plain
    True
    >>> # for all processes
    >>> shared = om.devices.Ledger.open("spent.json", packed, None, radius=1, budget=5)
    >>> shared.charge((1, 1))
    True
    """

    @checked_arguments
    def __init__(
        self,
        mechanism: PackedMechanism | Earth,
        epsilon: Number | None = None,
        radius: Number = 1,
        *,
        budget: float | None = None,
        delta: Number = 1e-6,
        by: str = "plain",
        fall_back: str = "refuse",
        between: str = "positions",
        order: float | None = None,
    ) -> None:
        one_of(by, ("plain", "rows", "composed"), "by")
        one_of(fall_back, FALL_BACKS, "fall_back")
        one_of(between, BETWEEN, "between")
        self.mechanism = mechanism
        self.epsilon = charged(mechanism, epsilon)
        self.radius = float(parse_exact(radius, where="radius", positive=True))
        self.budget = None if budget is None else float(parse_exact(budget, where="budget"))
        self.delta = float(probability(delta, positive=True))
        self.by, self.fall_back, self.between = by, fall_back, between
        self._costs = Costs(mechanism, self.epsilon, self.radius, between)
        if self._costs.plain >= MOST_CHARGED:
            raise ProblemError(
                "charges more than a ledger can add up", where="epsilon", remedy="Give less"
            )
        self._limit = None if self.budget is None else limit(self.budget)
        self._order = best_order(self._costs.plain, decimal(self.delta), self._limit)
        if order is not None:
            self._order = 1 + eighths(float(parse_exact(order, where="order"))) / 8
        self._mutex = Mutex()
        self._path: Path | None = None
        self._draws: Counter[int] = Counter()
        self._before = Spent()

    @classmethod
    @checked_arguments
    def open(
        cls,
        path: str | Path,
        mechanism: PackedMechanism | Earth,
        epsilon: Number | None = None,
        *,
        radius: Number = 1,
        redesigned: bool = False,
        **options: Any,
    ) -> Ledger:
        """A ledger that lives in a file, for any number of threads and processes.

        A draw is on the disk before ``charge`` returns, so that who is killed loses a report at
        most, and never a charge. The file is made where there is none, for its owner alone; beside
        it lies a lock.

        Parameters
        ----------
        redesigned:
            The file may be that of another mechanism, which this one replaces: what was spent
            counts on, and whoever still draws by the old one is refused.
        options:
            Those of ``Ledger``.

        Raises
        ------
        ProblemError
            As ``Ledger``, and where the file cannot be used, is no ledger, or is that of another
            mechanism, radius, δ or order.
        """
        truth(redesigned, "redesigned")
        ledger = cls(mechanism, epsilon, radius, **options)
        ledger._path = _file(path)
        with ledger._alone(ledger._path):
            known = os.path.lexists(ledger._path)
            if known:
                ledger._take(_kept(ledger._path), redesigned, options.get("order") is not None)
            ledger._keep()
            if not known:
                # before there is a place in it
                ledger._path.chmod(0o600)
        return ledger

    def __repr__(self) -> str:
        with self._held():
            draws = sum(self._draws.values()) + self._before.draws
            spent = float(written(self._sum(self._draws, self.by)))
        limit = "" if self.budget is None else f" of {self.budget:g}"
        unit = getattr(self.mechanism.observables, "unit", "km")
        return (
            f"Ledger({draws:,} draw{'' if draws == 1 else 's'}; {self.by} {spent:.9g}{limit} "
            f"spent, {self.per_draw:.9g} a draw; within {f'{self.radius:g} {unit}'.strip()})"
        )

    # -- drawing ---------------------------------------------------------------------------------

    def charge(self, secret: Any) -> bool:
        """Note one draw for a secret (of a mechanism for every point: a position) where it stays
        within the budget, and say whether it did. Draw only after True."""
        place = self._costs.number(secret)
        with self._held():
            allowed = self._allows(place)
            if allowed:
                self._note(place, 1)
        return allowed

    def enter(self, secret: Any, times: int = 1) -> None:
        """Note draws for a secret that were made elsewhere, whatever the budget."""
        place, count = self._costs.number(secret), whole(times, "times", least=1)
        with self._held():
            self._note(place, count)

    def allows(self, secret: Any) -> bool:
        """Whether one more draw for a secret stays within the budget. Another thread or process may
        take it before: ``charge`` looks and notes at once."""
        place = self._costs.number(secret)
        with self._held():
            return self._allows(place)

    @property
    def draws(self) -> dict[int, int]:
        """How many draws were made at the place of each number, of this mechanism."""
        with self._held():
            return dict(sorted(self._draws.items()))

    # -- figures ---------------------------------------------------------------------------------

    @property
    def per_draw(self) -> float:
        """What a draw is charged plainly: a decimal of nine digits."""
        return float(written(self._costs.plain))

    @property
    def order(self) -> float:
        """The Rényi order of the composed figure."""
        return self._order

    @property
    def plain(self) -> float:
        """The number of draws, times what one is charged."""
        return self._figure("plain")

    @property
    def rows(self) -> float:
        """The largest log ratio of the rows that were used, summed."""
        return self._figure("rows")

    @property
    def composed(self) -> float:
        """The ε of all draws together at ``delta``."""
        return self._figure("composed")

    # -- keeping ---------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The draws and what they cost as plain values, to be kept on the device; the JavaScript
        client reads and writes the same."""
        with self._held():
            return self._state().to_dict()

    def restore(self, plain: Mapping[str, Any], *, redesigned: bool = False) -> None:
        """Take over what ``to_dict`` gave, before the first draw, and its order.

        Where it is of a file that this mechanism is ``redesigned`` from, what was spent counts on.
        Raises ProblemError where it is of another file, radius or δ, where it does not add up, and
        where this ledger has draws of its own.
        """
        truth(redesigned, "redesigned")
        with self._mutex:
            if self._path is not None or self._draws or self._before.draws:
                raise ProblemError(
                    "has draws of its own, which would be forgotten",
                    where="ledger",
                    remedy="Restore into a new ledger",
                )
            self._take(plain, redesigned, False)

    def _state(self) -> State:
        own = self.mechanism.digest.hex(), self.radius, self.between, self.delta, self._order
        return State(*own, self._draws, self._spent(), self._before)

    def _take(self, plain: Any, redesigned: bool, fixed: bool) -> None:
        """Be what a plain form says; with another order only where it is not ``fixed``."""
        state = State.of(plain)
        own = state.file == self.mechanism.digest.hex()
        if not own and not redesigned:
            raise ProblemError(
                "is no ledger of this mechanism",
                where="ledger",
                remedy="Where this one replaces that: redesigned=True, and what was spent counts",
            )
        for name in ("radius", "between", "delta", *(["order"] if fixed else [])):
            if getattr(state, name) != getattr(self, name):
                raise ProblemError(
                    f"was kept for {name} = {getattr(state, name)!r}, and {getattr(self, name)!r} "
                    "is asked for",
                    where="ledger",
                    remedy=f"Give that {name}: what was spent was counted for it",
                )
        if not own:
            self._order, self._draws = state.order, Counter()
            self._before = state.spent + state.before
            return
        if any(place >= self._costs.places for place in state.draws):
            raise no_ledger("it has draws of places that there are not")
        kept = self._order, self._draws, self._before
        self._order, self._draws, self._before = state.order, state.draws, state.before
        # the plain figure depends on the rate that is asked for now
        if self._spent()[2:] != state.spent[2:]:
            self._order, self._draws, self._before = kept
            raise no_ledger("its draws cost something else")

    # -- the file --------------------------------------------------------------------------------

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Alone, and with all draws of other processes."""
        with self._mutex:
            path = self._path
            if path is None:
                yield
                return
            with self._alone(path):
                if not os.path.lexists(path):
                    raise ProblemError(
                        "is gone, and with it what was spent",
                        where=path,
                        remedy="Put it back; a new ledger is made by Ledger.open",
                    )
                self._take_no_less(_kept(path))
                yield

    def _take_no_less(self, plain: Any) -> None:
        """What other processes spent; a file with fewer draws than were seen is refused."""
        draws, before = self._draws, self._before
        self._take(plain, False, True)
        if sum(self._draws.values()) + self._before.draws < sum(draws.values()) + before.draws:
            self._draws, self._before = draws, before
            raise ProblemError(
                "is an older one: it has fewer draws than were made",
                where=str(self._path),
                remedy="Put the newer one back; what was spent since cannot be known from this",
            )

    @contextmanager
    def _alone(self, path: Path) -> Iterator[None]:
        with locked(path.with_name(f"{path.name}.lock"), wait=True) as self._is_alone:
            yield

    def _keep(self) -> None:
        if self._path is not None:
            content = json.dumps(self._state().to_dict()) + "\n"
            if not self._is_alone():
                raise ProblemError(
                    "its lock was removed while it was held",
                    where=self._path,
                    remedy="Leave the file that ends in .lock where it is, and try again",
                )
            write_atomically(self._path, content.encode())

    # -- sums ------------------------------------------------------------------------------------

    def _note(self, place: int, count: int) -> None:
        """Draws of a place; what cannot be written is not noted, and raises."""
        before = self._draws
        if sum(before.values()) + count + self._before.draws > MOST_DRAWS:
            raise ProblemError("has more draws than it can count", where="ledger")
        self._draws = before + Counter({place: count})
        try:
            self._keep()
        except BaseException:
            self._draws = before
            raise

    def _allows(self, place: int) -> bool:
        self._costs.rows(place)
        if self._limit is None:
            return True
        return self._sum(self._draws + Counter([place]), self.by) <= self._limit

    def _figure(self, name: str) -> float:
        with self._held():
            return float(written(self._sum(self._draws, name)))

    def _sum(self, draws: Counter[int], name: str) -> int:
        """One figure of these draws and those before, as a charge."""
        if name != "composed":
            found: int = getattr(self._before, name) + self._own(draws, name)
            return found
        composed = self._sum(draws, "divergence") + tail(decimal(self.delta), self._order)
        return min(self._sum(draws, "rows"), composed)

    def _own(self, draws: Counter[int], name: str) -> int:
        """One of the sums of charges, of these draws."""
        if name == "plain":
            return sum(draws.values()) * self._costs.plain
        if name == "rows":
            return sum(n * self._costs.rows(k) for k, n in draws.items())
        return sum(n * self._costs.divergence(k, self._order) for k, n in draws.items())

    def _spent(self) -> Spent:
        draws = self._draws
        return Spent(sum(draws.values()), *(self._own(draws, name) for name in Spent._fields[1:]))


def _kept(path: Path) -> Any:
    """What a file of a ledger holds."""
    content = read_bytes(path, _MOST_BYTES)
    if path.stat().st_nlink > 1:
        raise ProblemError(
            "has two names, one of which would keep what was spent so far",
            where=path,
            remedy="Remove the other hard link",
        )
    try:
        return json.loads(content, object_pairs_hook=distinct)
    except (ValueError, RecursionError):
        raise no_ledger(f"{path} is no JSON") from None
    except ProblemError as error:
        raise no_ledger(f"{path}: {error}") from None


def _file(path: str | Path) -> Path:
    """The file itself, so that all of its links have one lock."""
    if descriptor_of(path) is not None:
        raise ProblemError("is a stream", where=path, remedy="Name a file")
    refuse_unwritable(path)
    return Path(os.path.realpath(path))
