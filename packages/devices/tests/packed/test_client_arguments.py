"""What is no argument of the client is refused by its own error, and by Python's like it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optmech_devices
import pytest

import optmech as om

VECTORS = Path(__file__).parent / "vectors"
CLIENT = Path(optmech_devices.__file__).parent / "client"
PLAIN: list[Any] = [None, True, False, 0, 1.5, -1, "", "2", [], ["a"], [None, 1], {}, {"length": 2}]
"""Values that both languages have."""
HEAD = """
import * as client from CLIENT;
import { readFileSync } from "node:fs";
const { Ledger, PackedError, StickyReports, geolocation, install, load } = client;
const file = (name) => readFileSync(`${VECTORS}/${name}.omm`);
const [line, field, grid] = await Promise.all(["line", "field", "grid"].map((n) => load(file(n))));
const key = new Uint8Array(32);
const said = async (action) => {
  try { await action(); return "taken"; }
  catch (error) { return error instanceof PackedError ? "refused" : String(error.stack); }
};
"""


def answered(node: str, script: str) -> Any:
    """What a script for Node writes; it has ``said``, a few mechanisms and all of the client."""
    head = HEAD.replace("CLIENT", json.dumps((CLIENT / "index.js").as_uri()))
    head = head.replace("${VECTORS}", VECTORS.as_posix())
    run = subprocess.run(
        [node, "--input-type=module", "-e", head + script], capture_output=True, check=True
    )
    return json.loads(run.stdout)


ODD = """
const detached = new ArrayBuffer(64);
structuredClone(detached, { transfer: [detached] });
const odd = [undefined, ...PLAIN, NaN, Infinity, -Infinity, 2n, Symbol("s"), () => 1, new Date(0),
  Object.create(null), new Map(), new DataView(new ArrayBuffer(2)), new Uint16Array(32),
  new BigInt64Array(2), [, 1], Promise.resolve(1), detached, new Uint8Array(31)];
const calls = {
  "content": (x) => load(x),
  "load's options": (x) => load(file("line"), x),
  "load's signer": (x) => load(file("line"), { signer: x }),
  "ledger's mechanism": (x) => new Ledger(x, null, 1),
  "ledger's epsilon": (x) => new Ledger(line, x, 1),
  "ledger's radius": (x) => new Ledger(line, null, x),
  "ledger's options": (x) => new Ledger(line, null, 1, x),
  "budget": (x) => new Ledger(line, null, 1, { budget: x }),
  "delta": (x) => new Ledger(line, null, 1, { delta: x }),
  "by": (x) => new Ledger(line, null, 1, { by: x }),
  "fallBack": (x) => new Ledger(line, null, 1, { fallBack: x }),
  "between": (x) => new Ledger(line, null, 1, { between: x }),
  "order": (x) => new Ledger(line, null, 1, { order: x }),
  "charge": (x) => new Ledger(line, null, 1).charge(x),
  "allows": (x) => new Ledger(line, null, 1).allows(x),
  "enter": (x) => new Ledger(line, null, 1).enter(x),
  "times": (x) => new Ledger(line, null, 1).enter(2, x),
  "state": (x) => new Ledger(line, null, 1).restore(x),
  "restore's options": (x) => new Ledger(line, null, 1).restore(state, x),
  "redesigned": (x) => new Ledger(line, null, 1).restore(state, { redesigned: x }),
  "sticky's mechanism": (x) => new StickyReports(x, key),
  "key": (x) => new StickyReports(line, x),
  "sticky's options": (x) => new StickyReports(line, key, x),
  "period": (x) => new StickyReports(line, key, { period: x }),
  "sticky's ledger": (x) => new StickyReports(line, key, { ledger: x }),
  "save": (x) => new StickyReports(line, key, { save: x }),
  "report's place": (x) => new StickyReports(line, key).report(x, 0),
  "report's time": (x) => new StickyReports(line, key).report(2, x),
  "entropy's place": (x) => new StickyReports(line, key).entropy(x, 0),
  "entropy's epoch": (x) => new StickyReports(line, key).entropy(2, x),
  "sticky's state": (x) => new StickyReports(line, key).restore(x),
  "draw's place": (x) => line.draw(x, new Uint8Array(line.drawBytes)),
  "draw's bytes": (x) => line.draw(2, x),
  "sample": (x) => line.sample(x),
  "probabilities": (x) => line.probabilities(x),
  "locate": (x) => line.locate(x),
  "describe": (x) => line.describe(x),
  "region's locate": (x) => field.locate(x),
  "region's draw": (x) => field.draw(x, new Uint8Array(field.drawBytes)),
  "region's bytes": (x) => field.draw([0.3, 0.3], x),
  "region's sample": (x) => field.sample(x),
  "region's describe": (x) => field.describe(x),
  "geolocation's reports": (x) => geolocation(x, {}),
  "source": (x) => geolocation(new StickyReports(grid, key), x),
  "install's reports": (x) => install(x, {}),
  "page": (x) => install(new StickyReports(grid, key), x),
};
const state = new Ledger(line, null, 1).toDict();
const out = {};
for (const [name, call] of Object.entries(calls)) {
  out[name] = [];
  for (const x of odd) out[name].push(await said(() => call(x)));
}
console.log(JSON.stringify(out));
"""
OPTIONAL = {
    "load's options": {"undefined", "{}"}, "ledger's options": {"undefined", "{}"},
    "ledger's epsilon": {"null", "1.5"},
    "ledger's radius": {"1.5"}, "budget": {"undefined", "null", "0", "1.5"},
    "delta": {"undefined"}, "by": {"undefined"}, "fallBack": {"undefined"},
    "between": {"undefined"}, "order": {"undefined", "null", "1.5"}, "charge": {"0"},
    "allows": {"0"}, "enter": {"0"}, "times": {"undefined"},
    "restore's options": {"undefined", "{}"},
    "redesigned": {"undefined", "true", "false"}, "sticky's options": {"undefined", "{}"},
    "period": {"undefined"}, "sticky's ledger": {"undefined", "null"},
    "save": {"undefined", "null", "() => 1"}, "report's place": {"0"},
    "report's time": {"undefined", "0", "1.5"}, "entropy's place": {"0"},
    "entropy's epoch": {"0", "2n"}, "draw's place": {"0"}, "sample": {"0"}, "probabilities": {"0"},
    "describe": {"0"}, "region's describe": {"0"},
}  # fmt: skip
"""What is taken, of the odd values; everything else is refused."""
NAMES = [
    "undefined", *[json.dumps(value) for value in PLAIN], "NaN", "Infinity", "-Infinity", "2n",
    "Symbol", "() => 1", "Date", "{}", "Map", "DataView", "Uint16Array", "BigInt64Array", "[, 1]",
    "Promise", "detached", "Uint8Array(31)",
]  # fmt: skip


def test_what_is_no_argument_of_the_client_is_refused(node: str) -> None:
    """Every argument of every function, and values of every kind: no other error than its own."""
    found = answered(node, ODD.replace("PLAIN", json.dumps(PLAIN)))
    for name, answers in found.items():
        verdicts = dict(zip(NAMES, answers, strict=True))
        assert set(verdicts.values()) <= {"taken", "refused"}, (name, verdicts)
        taken = {value for value, said in verdicts.items() if said == "taken"}
        assert taken == OPTIONAL.get(name, set()), name


def test_nothing_of_a_mechanism_is_replaced_in_node(node: str) -> None:
    """Neither its parts nor what is in them; the digest that ledgers go by is a copy."""
    script = """
    const draw = (mechanism) => [0, 1, 2, 3].map((k) => mechanism.describe(mechanism.columns[k]));
    const before = [JSON.stringify([line, field, grid]), JSON.stringify(draw(line))];
    const [kinds, refused] = [[], []];
    const names = (value) => value === null || typeof value !== "object" ? []
      : [...Reflect.ownKeys(value), ...Object.keys(Object.getOwnPropertyDescriptors(
        Object.getPrototypeOf(value))).filter((name) => name === "digest")];
    let tried = 0;
    const change = (value, seen = new Set()) => {
      if (value === null || typeof value !== "object" || seen.has(value)) return;
      seen.add(value);
      for (const name of names(value)) {
        if (ArrayBuffer.isView(value)) continue;
        tried += 1;
        const inner = value[name];
        try { value[name] = 7; kinds.push(name); } catch (error) { refused.push(error.name); }
        change(inner, seen);
      }
      if (!ArrayBuffer.isView(value) && Object.isExtensible(value)) kinds.push("more");
    };
    const ledger = new Ledger(line, null, 1);
    for (const value of [line, field, grid, ledger, new StickyReports(line, key)]) change(value);
    line.digest.fill(0);
    const forged = { ...line, digest: grid.digest };
    const after = [JSON.stringify([line, field, grid]), JSON.stringify(draw(line))];
    console.log(JSON.stringify({ tried, kinds, zero: line.digest.every((b) => b === 0),
      same: String(after) === String(before), errors: [...new Set(refused)],
      forged: await said(() => new Ledger(forged, null, 1)) }));
    """
    found = answered(node, script)
    assert found["tried"] > 200
    assert found == {
        "tried": found["tried"], "kinds": [], "zero": False, "same": True,
        "errors": ["TypeError"], "forged": "refused",
    }  # fmt: skip


LINE = om.load_packed(VECTORS / "line.omm")
KEY = bytes(32)
STATE = om.Ledger(LINE, None, 1).to_dict()
PYTHON: dict[str, Callable[[Any], object]] = {
    "content": om.load_packed,
    "signer": lambda x: om.load_packed(VECTORS / "line.omm", signer=x),
    "ledger's mechanism": lambda x: om.Ledger(x, None, 1),
    "ledger's epsilon": lambda x: om.Ledger(LINE, x, 1),
    "ledger's radius": lambda x: om.Ledger(LINE, None, x),
    "budget": lambda x: om.Ledger(LINE, None, 1, budget=x),
    "delta": lambda x: om.Ledger(LINE, None, 1, delta=x),
    "by": lambda x: om.Ledger(LINE, None, 1, by=x),
    "fallBack": lambda x: om.Ledger(LINE, None, 1, fall_back=x),
    "between": lambda x: om.Ledger(LINE, None, 1, between=x),
    "order": lambda x: om.Ledger(LINE, None, 1, order=x),
    "charge": lambda x: om.Ledger(LINE, None, 1).charge(x),
    "allows": lambda x: om.Ledger(LINE, None, 1).allows(x),
    "enter": lambda x: om.Ledger(LINE, None, 1).enter(x),
    "times": lambda x: om.Ledger(LINE, None, 1).enter(2, x),
    "state": lambda x: om.Ledger(LINE, None, 1).restore(x),
    "redesigned": lambda x: om.Ledger(LINE, None, 1).restore(STATE, redesigned=x),
    "sticky's mechanism": lambda x: om.StickyReports(x, KEY),
    "key": lambda x: om.StickyReports(LINE, x),
    "period": lambda x: om.StickyReports(LINE, KEY, period=x),
    "sticky's ledger": lambda x: om.StickyReports(LINE, KEY, ledger=x),
    "report's place": lambda x: om.StickyReports(LINE, KEY).report(x, 0),
    "report's time": lambda x: om.StickyReports(LINE, KEY).report(2, x),
    "entropy's place": lambda x: om.StickyReports(LINE, KEY).entropy(x, 0),
    "entropy's epoch": lambda x: om.StickyReports(LINE, KEY).entropy(2, x),
    "sticky's state": lambda x: om.StickyReports(LINE, KEY).restore(x),
    "locate": LINE.locate,
}


EXACT = ("ledger's epsilon", "ledger's radius", "budget", "order")
LABELS = ("charge", "allows", "enter", "report's place")
ONLY_HERE = {
    "signer": {"null"},
    # numbers may be texts, which are exact
    **{key: {'"2"'} for key in EXACT},
    # a label is what equals it, and True is 1
    **{key: {"true", "false"} for key in LABELS},
}


@pytest.mark.parametrize("name", PYTHON)
def test_python_takes_and_refuses_the_same(name: str) -> None:
    taken = set()
    for value in PLAIN:
        try:
            PYTHON[name](value)
            taken.add(json.dumps(value))
        except om.OptmechError:
            pass
    shared = OPTIONAL.get(name, set()) & {json.dumps(value) for value in PLAIN}
    assert taken == shared | ONLY_HERE.get(name, set())


def test_what_a_ledger_is_for_is_not_replaced() -> None:
    ledger = om.Ledger(LINE, None, 1)
    sticky = om.StickyReports(LINE, KEY, ledger=ledger)
    for owner in (ledger, sticky):
        for name in [n for n in vars(owner) if not n.startswith("_")]:
            with pytest.raises(AttributeError, match=name):
                setattr(owner, name, None)
