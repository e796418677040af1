"""What is embedded reads back, and cannot leave its script."""

from __future__ import annotations

import base64
import json

import numpy as np
from hypothesis import given, strategies as st

from optmech.show.reports.payload import Store, number, script_json


@given(st.recursive(st.text() | st.integers(-9, 9), lambda inner: st.lists(inner, max_size=3)))
def test_json_in_a_script_reads_back_and_has_no_markup(value: object) -> None:
    text = script_json({"value": value})
    assert json.loads(text) == {"value": value}
    assert not set(text) & set("<>&\u2028\u2029")


def test_arrays_read_back_and_are_kept_once() -> None:
    store = Store()
    values = np.array([[0.1, np.inf], [-np.inf, 3.0]])
    name = store.put(values, "f64")
    assert store.put(values.copy(), "f64") == name
    assert store.put(values, "f32") != name
    assert len(store.entries) == 2
    raw = base64.b64decode(store.entries[name]["base64"])
    np.testing.assert_array_equal(np.frombuffer(raw, "<f8").reshape(2, 2), values)


def test_numbers_without_a_finite_value() -> None:
    assert [number(x) for x in (0.5, float("inf"), float("-inf"), float("nan"))] == [
        0.5, "inf", "-inf", None,
    ]  # fmt: skip
