"""Surveys with private reports: how many people, which mechanism, and what the reports say. Every
name is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optmech.base.names import lazily

if TYPE_CHECKING:
    from optmech_surveys.numbers import (
        duchi as duchi,
        hybrid as hybrid,
        piecewise as piecewise,
    )
    from optmech_surveys.peers import (
        hadamard as hadamard,
        unary_encoding as unary_encoding,
    )
    from optmech_surveys.planning import Plan as Plan, Row as Row, plan_survey as plan_survey
else:
    __getattr__, __dir__ = lazily(__name__)
