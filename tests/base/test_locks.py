"""Locks where a file system has none: every caller says so, and nobody is said to hold one."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

import optmech as om
from optmech.base.lock import locked

NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL, errno.EIO, errno.EPERM)
SWEEP = """format = 1
problem = "grid-4x4"
[[axes]]
kind = "list"
path = "constraints[0].epsilon"
values = [1]
"""
KM = om.distances.euclidean()


def packed(folder: Path) -> om.devices.PackedMechanism:
    cells = om.Grid(2, 2, unit="km")
    problem = om.Problem(om.Prior.uniform(cells), KM, constraints=[om.MetricPrivacy(1, KM)])
    om.pack(om.solve(problem), folder / "cells.omm")
    return om.devices.load_packed(folder / "cells.omm")


@pytest.fixture(params=NO_LOCKS, ids=lambda number: errno.errorcode[number])
def failing(request: pytest.FixtureRequest) -> OSError:
    return OSError(request.param, os.strerror(request.param))


@pytest.fixture(params=[True, False], ids=["also to unlock", "to lock"])
def without(
    request: pytest.FixtureRequest, failing: OSError, monkeypatch: pytest.MonkeyPatch
) -> OSError:
    flock = fcntl.flock

    def fails(handle: int, operation: int) -> None:
        if operation & fcntl.LOCK_UN and not request.param:
            flock(handle, operation)
            return
        raise failing

    monkeypatch.setattr(fcntl, "flock", fails)
    return failing


@pytest.mark.parametrize("use", ["lock", "waiting lock", "sweep", "ledger"])
def test_it_is_said_what_is_wrong(use: str, without: OSError, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SWEEP)
    mechanism = packed(tmp_path) if use == "ledger" else None
    handles = set(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None

    def used() -> None:
        if use == "sweep":
            om.sweep(tmp_path / "s.toml", directory=tmp_path / "run", progress=None)
        elif mechanism is not None:
            om.devices.Ledger.open(tmp_path / "spent.json", mechanism, None, radius=1)
        else:
            with locked(tmp_path / "x.lock", wait=use == "waiting lock"):
                raise AssertionError

    with pytest.raises(om.ProblemError) as caught:
        used()
    said = str(caught.value)
    assert "another run" not in said
    assert without.strerror in said
    if without.errno in NO_LOCKS[:4]:
        assert "no locks" in said
        assert "local disk" in said
    if handles is not None:
        assert set(os.listdir("/proc/self/fd")) <= handles
