"""Deterministic CBOR against the examples of RFC 8949 and the audit's own implementation."""

from __future__ import annotations

import tracemalloc

import pytest
from each import each
from hypothesis import given, strategies as st
from optmech_audit import cbor as audited_cbor
from optmech_audit.cbor import Content, cbor, item, parsed
from optmech_audit.numbers import Fault
from optmech_devices.packed import cbor as packed_cbor
from optmech_devices.packed.cbor import Tag, decode, encode

from optmech.errors import ProblemError

# RFC 8949, appendix A
EXAMPLES = [
    (0, "00"), (23, "17"), (24, "1818"), (100, "1864"), (1000, "1903e8"), (1000000, "1a000f4240"),
    (18446744073709551615, "1bffffffffffffffff"), (-18446744073709551616, "3bffffffffffffffff"),
    (-1, "20"), (-1000, "3903e7"), (0.0, "f90000"), (-0.0, "f98000"), (1.1, "fb3ff199999999999a"),
    (1.5, "f93e00"), (65504.0, "f97bff"), (100000.0, "fa47c35000"),
    (3.4028234663852886e38, "fa7f7fffff"), (1.0e300, "fb7e37e43c8800759c"),
    (5.960464477539063e-8, "f90001"), (False, "f4"), (True, "f5"), (None, "f6"),
    (b"\1\2\3\4", "4401020304"), ("IETF", "6449455446"), ("\u00fc", "62c3bc"), ([], "80"),
    ([1, [2, 3], [4, 5]], "8301820203820405"), ({"a": 1, "b": [2, 3]}, "a26161016162820203"),
    (Tag(1, 1363896240), "c11a514b67b0"), (Tag(2, b"\1"), "c24101"), (Tag(28, []), "d81c80"),
    (Tag(55799, [Tag(55799, 0)]), "d9d9f781d9d9f700"),
]  # fmt: skip
REFUSED = {
    "an integer longer than needed": "1800",
    "a length longer than needed": "580101",
    "a float longer than needed": "fa3fc00000",
    "a string of indefinite length": "5f42010243030405ff",
    "an array of indefinite length": "9f0102ff",
    "keys out of order": "a2616201616101",
    "a key twice": "a2616101616102",
    "a key that is an array": "a1800a",
    "a key that is a number": "a10000",
    "a simple value that is none": "f8ff",
    "bytes left over": "0000",
    "nothing": "",
    "half a string": "4401",
    "an array of more items than bytes": "9b00000000ffffffff",
    "text that is not UTF-8": "61ff",
    "not a number": "f97e00",
    "an infinity": "f97c00",
    "undefined": "f7",
    "arrays in arrays without end": "81" * 40,
}
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**64), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.binary(max_size=300)
    | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=12,
)


@each(("value", "content"), EXAMPLES)
def test_the_examples_of_the_standard(value: object, content: str) -> None:
    assert encode(value).hex() == content
    assert encode(decode(bytes.fromhex(content))).hex() == content


@pytest.mark.parametrize("content", REFUSED.values(), ids=REFUSED)
def test_other_encodings_are_refused(content: str) -> None:
    with pytest.raises(ProblemError):
        decode(bytes.fromhex(content))


@given(values)
def test_an_independent_reader_agrees(value: object) -> None:
    content = encode(value)
    assert content == cbor(value)
    assert parsed(content) == [value]
    assert decode(content) == value


@given(st.binary(max_size=40))
def test_what_is_read_is_written_the_same(content: bytes) -> None:
    try:
        value = decode(content)
    except ProblemError:
        return
    assert encode(value) == content


UNITS = {
    "lists": b"\x80", "maps": b"\xa0", "integers": b"\x00", "texts": b"\x60", "bytes": b"\x41x",
    "tags": b"\xc6\x00", "floats": b"\xf9\x00\x00", "long floats": b"\xfb" + bytes(8),
    "lists in lists": b"\x81\x80", "pairs": b"\xa1\x60\x00", "true": b"\xf5",
}  # fmt: skip


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
def test_millions_of_items_are_refused_before_they_are_made(
    unit: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In both readers, with no more than a little beside the content's own; whose limits are the
    same. Here there are fewer, as memory is looked at."""
    assert packed_cbor.MOST_ITEMS == audited_cbor.MOST_ITEMS == 2**20
    count = 2**15
    monkeypatch.setattr(packed_cbor, "MOST_ITEMS", count)
    monkeypatch.setattr(audited_cbor, "MOST_ITEMS", count)
    content = b"\x9a" + count.to_bytes(4, "big") + unit * count
    tracemalloc.start()
    with pytest.raises(ProblemError, match="32,768 items"):
        decode(content)
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert used < 2 * len(content) + 2**16
    with pytest.raises(Fault, match=r"too many items|unknown tag"):
        parsed(content)


def test_so_many_items_are_written_and_read() -> None:
    """One list of 2^20 - 1 items is 2^20 of them; one more is refused in both directions."""
    values = [0] * (2**20 - 1)
    content = encode(values)
    assert decode(content) == values == parsed(content)[0]
    with pytest.raises(ProblemError, match="items"):
        encode([*values, 0])


@given(values)
def test_items_are_counted_alike(value: object) -> None:
    """By what is written, by what is read and by the second reader."""
    content = encode(value)
    stream = Content(content)
    item(stream, 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed_cbor, "MOST_ITEMS", stream.items)
        assert encode(value) == content
        assert encode(decode(content)) == content
        patch.setattr(packed_cbor, "MOST_ITEMS", stream.items - 1)
        for refused in (lambda: encode(value), lambda: decode(content)):
            with pytest.raises(ProblemError, match="items"):
                refused()
