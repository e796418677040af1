"""Ledgers under what happens to processes, files and arguments: forks, old copies, odd paths."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import optmech_devices
import pytest
from optmech_devices.packed import charges

import optmech as om
from optmech.base.lock import locked

VECTORS = Path(__file__).parent / "vectors"
KEY = bytes(range(32))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("kept", [True, False])
def test_a_fork_in_the_middle_of_a_charge_holds_nobody_up(
    line: om.PackedMechanism, tmp_path: Path, kept: bool
) -> None:
    """Another thread holds all locks while a process is forked: both go on, and nothing is lost."""
    path = tmp_path / "spent.json"
    ledger = (
        om.Ledger.open(path, line, None, radius=2.0) if kept else om.Ledger(line, None, radius=2.0)
    )
    sticky = om.StickyReports(line, KEY, ledger=ledger)
    held, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        with sticky._mutex, ledger._held():
            held.set()
            go_on.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(60)
    ready, begin = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(60)
        # the parent has charged when this process begins to
        os.read(ready, 1)
        found = sticky.report(2, 0.0)
        os._exit(0 if found is not None else 1)
    go_on.set()
    holder.join()
    charged: list[bool] = []
    other = threading.Thread(target=lambda: charged.append(ledger.charge(3)), daemon=True)
    other.start()
    other.join(30)
    try:
        assert charged == [True]
        os.write(begin, b".")
        assert os.waitpid(child, 0)[1] == 0
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise
    assert ledger.draws == ({2: 1, 3: 1} if kept else {3: 1})


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_inside_a_lock_leaves_it_to_the_parent(
    line: om.PackedMechanism, tmp_path: Path
) -> None:
    path = tmp_path / "spent.json"
    ledger = om.Ledger.open(path, line, None, radius=2.0)
    with ledger._alone(path):
        child = os.fork()
        if not child:
            signal.alarm(60)
            try:
                with ledger._alone(path):
                    os._exit(1)
            finally:
                os._exit(2)
        time.sleep(0.3)
        assert os.waitpid(child, os.WNOHANG)[0] == 0
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert ledger.charge(2)


def test_an_older_file_is_refused_by_who_saw_a_newer_one(
    line: om.PackedMechanism, tmp_path: Path
) -> None:
    path = tmp_path / "spent.json"
    ledger = om.Ledger.open(path, line, None, radius=2.0, budget=100)
    copies = [path.read_bytes()]
    for place in (2, 3, 2):
        assert ledger.charge(place)
        copies.append(path.read_bytes())
    empty = om.Ledger(line, None, radius=2.0).to_dict()
    for older in (*copies[:-1], json.dumps(empty).encode()):
        path.write_bytes(older)
        for _ in range(2):
            with pytest.raises(om.ProblemError, match="is an older one"):
                ledger.charge(2)
        assert path.read_bytes() == older
    path.write_bytes(copies[-1])
    assert ledger.charge(4)
    assert ledger.draws == {2: 2, 3: 1, 4: 1}


def test_a_file_that_says_a_thing_twice_is_none(line: om.PackedMechanism, tmp_path: Path) -> None:
    path = tmp_path / "spent.json"
    ledger = om.Ledger.open(path, line, None, radius=2.0)
    assert ledger.charge(2)
    text, state = path.read_text().strip(), om.Ledger(line, None, radius=2.0).to_dict()
    for key, value in state.items():
        path.write_text(f"{text[:-1]}, {json.dumps(key)}: {json.dumps(value)}}}")
        with pytest.raises(om.ProblemError, match=r"is no ledger: .*occurs twice"):
            om.Ledger.open(path, line, None, radius=2.0)


@pytest.mark.parametrize(
    "path", ["", ".", "/", "-", "/dev/stdout", "/dev/null", "a\0b", "none/", None, 5, b"spent", []]
)
def test_a_path_of_no_file_is_refused_and_nothing_made(
    line: om.PackedMechanism, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: Any
) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    with pytest.raises(om.ProblemError):
        om.Ledger.open(path, line, None, radius=2.0)
    assert [*tmp_path.rglob("*")] == [inner]


# -- large charges -------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [600.0, 1e4, 1e9, 1e23])
def test_a_large_rate_is_charged_and_its_state_read_again(
    line: om.PackedMechanism, epsilon: float
) -> None:
    ledger = om.Ledger(line, epsilon, 2.0)
    ledger.enter(2, 10**15)
    again = om.Ledger(line, epsilon, 2.0)
    again.restore(ledger.to_dict())
    assert again.plain == ledger.plain >= 2 * epsilon * 1e15
    for order in charges.ORDERS:
        # randomised response of rate t has a divergence above t - ln 2 · α / (α - 1), and below t
        t = int(epsilon) * charges.UNIT
        found = charges.within(t, order)
        rate = Fraction(order)
        assert t - charges.UNIT * rate / (rate - 1) <= found <= t


@pytest.mark.parametrize("epsilon", [1e30, 1e300, "1e308"])
def test_a_rate_beyond_what_can_be_added_up_is_refused(
    line: om.PackedMechanism, epsilon: float | str
) -> None:
    with pytest.raises(om.ProblemError, match="more than a ledger can add up"):
        om.Ledger(line, epsilon, 2.0)


def test_large_rates_and_odd_types_in_node(line: om.PackedMechanism, tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no Node")
    client = (Path(optmech_devices.__file__).parent / "client" / "index.js").as_uri()
    script = tmp_path / "asked.mjs"
    script.write_text(
        f"""import {{ readFileSync }} from "node:fs";
import {{ Ledger, load }} from {json.dumps(client)};
const line = await load(readFileSync({json.dumps(str(VECTORS / "line.omm"))}));
const found = [600, 1e4, 1e9, 1e23, 1e30, 1e300].map((epsilon) => {{
  try {{
    const ledger = new Ledger(line, epsilon, 2);
    ledger.enter(2, 1000);
    return ledger.toDict();
  }} catch (error) {{
    return error.message;
  }}
}});
const state = new Ledger(line, null, 2).toDict();
const types = [1n, Symbol("a"), null, "2", true].map((order) => {{
  try {{
    new Ledger(line, null, 2).restore({{ ...state, order }});
    return "taken";
  }} catch (error) {{
    return error.constructor.name;
  }}
}});
for (const options of [null, 5, "x"]) {{
  types.push(await load(readFileSync({json.dumps(str(VECTORS / "line.omm"))}), options).then(
    () => "taken", (error) => error.constructor.name));
}}
console.log(JSON.stringify([found, types]));
"""
    )
    command = [node, str(script)]
    asked = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    found, types = json.loads(asked.stdout)
    assert types == ["PackedError"] * 8
    for epsilon, state in zip([600, 1e4, 1e9, 1e23], found, strict=False):
        ledger = om.Ledger(line, epsilon, 2.0)
        ledger.enter(2, 1000)
        assert ledger.to_dict() == state
    assert all("more than a ledger can add up" in message for message in found[4:])


# -- sticky state --------------------------------------------------------------------------------


@pytest.mark.parametrize("epoch", ["1_0", " 1", "+1", "１", "", "1" * 21, str(2**64), 1, None])
def test_an_epoch_that_to_dict_does_not_write_is_refused(
    line: om.PackedMechanism, epoch: Any
) -> None:
    sticky = om.StickyReports(line, KEY)
    state = sticky.to_dict()
    with pytest.raises(om.ProblemError):
        sticky.restore({**state, "entered": [[2, epoch]]})


@pytest.mark.skipif(os.name == "nt", reason="a file that is open cannot be removed there")
@pytest.mark.parametrize("instead", ["nothing", "a new file", "a link"])
def test_a_draw_under_a_lock_that_is_removed_meanwhile_is_refused(
    line: om.PackedMechanism, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, instead: str
) -> None:
    """Somebody else may hold the one that has its name now, and their draw would be forgotten."""
    path = tmp_path / "spent.json"
    ledger = om.Ledger.open(path, line, None, radius=2.0, budget=30)
    assert ledger.charge(2)
    before, lock = path.read_bytes(), tmp_path / "spent.json.lock"
    allows = ledger._allows

    def slow(place: int) -> bool:
        lock.unlink()
        if instead == "a new file":
            lock.touch()
        elif instead == "a link":
            lock.symlink_to(path)
        return allows(place)

    monkeypatch.setattr(ledger, "_allows", slow)
    with pytest.raises(om.ProblemError, match="removed"):
        ledger.charge(2)
    assert path.read_bytes() == before
    monkeypatch.undo()
    if instead == "a link":
        lock.unlink()
    assert ledger.charge(3)
    assert ledger.draws == {2: 1, 3: 1}


@pytest.mark.skipif(os.name == "nt", reason="a file that is open cannot be removed there")
@pytest.mark.parametrize("wait", [True, False])
def test_who_waited_for_a_lock_that_was_removed_is_not_alone_by_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wait: bool
) -> None:
    """The file of a lock is removed between being opened and locked, and another one is held."""
    fcntl = pytest.importorskip("fcntl")
    path, flock = tmp_path / "spent.json.lock", fcntl.flock
    opened, removed, settled = threading.Event(), threading.Event(), threading.Event()
    order: list[str] = []

    def slow(handle: int, operation: int) -> None:
        if threading.current_thread() is waiter and operation & fcntl.LOCK_EX:
            if opened.is_set():
                settled.set()
            opened.set()
            assert removed.wait(60)
        flock(handle, operation)

    def second() -> None:
        try:
            with locked(path, wait=wait):
                order.append("the second")
        except om.ProblemError:
            order.append("refused")
        settled.set()

    waiter = threading.Thread(target=second)
    monkeypatch.setattr(fcntl, "flock", slow)
    waiter.start()
    assert opened.wait(60)
    path.unlink()
    with locked(path, wait=wait):
        removed.set()
        assert settled.wait(60)
        if not wait:
            waiter.join(60)
        order.append("the first")
    waiter.join(60)
    assert order == (["the first", "the second"] if wait else ["refused", "the first"])
