"""The model that a document has for itself reads it as the model of all documents does."""

from __future__ import annotations

from typing import Any

import pytest

from optmech.files.gallery import find_problem, gallery_names
from optmech.files.problem import problem_section, section_for
from optmech.reading.source import read_document


def of(name: str) -> dict[str, Any]:
    return dict(read_document(find_problem(name)))


@pytest.mark.parametrize("name", gallery_names())
def test_both_read_the_same(name: str) -> None:
    own = section_for(of(name))
    assert own is not None
    assert own.model_validate(of(name)).model_dump() == (
        problem_section().model_validate(of(name)).model_dump()
    )


@pytest.mark.parametrize(
    "change",
    [
        {"loss": None},
        {"constraints": "none"},
        {"constraints": [None]},
        {"constraints": [{"kind": "unheard of"}]},
        {"constraints": [{"epsilon": 1}]},
    ],
)
def test_what_is_like_no_problem_has_none(change: dict[str, Any]) -> None:
    assert section_for({**of("grid-4x4"), **change}) is None


@pytest.mark.parametrize(
    "change",
    [
        {"secrets": {"kind": "unheard of"}},
        {"secrets": {"kind": "grid", "rows": -1, "columns": 4}},
        {"unheard_of": 1},
        {"prior": 5},
        {"objective": "unheard of"},
    ],
)
def test_what_one_refuses_both_do(change: dict[str, Any]) -> None:
    document = {**of("grid-4x4"), **change}
    own = section_for(document)
    assert own is not None
    for model in (own, problem_section()):
        with pytest.raises(ValueError, match="validation error"):
            model.model_validate(document)
