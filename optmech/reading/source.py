"""Reads a problem file into plain dictionaries, and refuses what cannot be a problem file."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from optmech.errors import ProblemError
from optmech.reading.bounded import read_text
from optmech.reading.errors import by_ending
from optmech.reading.sealed import distinct

MAX_DEPTH = 32
MAX_TOML_BYTES = 8 * 2**20
"""Python reads a megabyte of TOML in about a second, and JSON in a hundredth of that."""
_MOST_TABLES = {"JSON": 2_000_000, "TOML": 200_000}
"""Tables and arrays of a file: each takes thirty times the memory of the bytes that make one."""
_QUOTED = re.compile(
    r'"""[\s\S]*?(?:"""|\Z)|\'\'\'[\s\S]*?(?:\'\'\'|\Z)'
    r'|"(?:[^"\\\n]|\\.)*"?|\'[^\'\n]*\'?|#[^\n]*'
)
_COMPRESSED = (".gz", ".bz2", ".xz", ".zip", ".zst")
_BETWEEN_DOTS = re.compile(r"[^,=\[\]{}\n]*")
_INTEGER_LIMIT = 2**63


def read_document(path: Path) -> dict[str, Any]:
    """The content of a TOML file, or of a JSON file when the name ends in .json. Raises
    ProblemError on a file that cannot be read, is larger than 64 MiB (TOML: 8 MiB), is not UTF-8,
    has a syntax error (with its line), nests deeper than 32 levels or is not a table at the top."""
    if path.suffix.lower() in _COMPRESSED:
        raise ProblemError(
            "is compressed", where=path, remedy="Unpack it: only tables and maps may be packed"
        )
    return parsed_document(read_text(path), path)


def parsed_document(text: str, path: Path) -> dict[str, Any]:
    """The table that the text of a file holds."""
    try:
        document = _parsed(text, "JSON" if path.suffix.lower() == ".json" else "TOML")
        _check_values(document)
    except ProblemError as error:
        other = by_ending(path)
        if other is not None:
            what, remedy = other
            message = f"is {what}, and no file that says what is wanted"
            raise ProblemError(message, where=path, remedy=remedy) from error
        raise error.moved(str(path)) from error.__cause__
    if not isinstance(document, dict):
        raise ProblemError(
            f"the top level is a {type(document).__name__}, not an object",
            where=path,
            remedy='Write an object such as {"format": 1, ...}',
        )
    return document


def _parsed(text: str, form: str) -> Any:
    if form == "TOML" and len(text) > MAX_TOML_BYTES:
        raise ProblemError(
            f"has {len(text):,} characters, more than the {MAX_TOML_BYTES:,} that are read of TOML",
            remedy="Write it as JSON, or put the numbers into a CSV file",
        )
    bare = text if form == "JSON" else _QUOTED.sub("", text)
    tables = bare.count("[") + bare.count("{")
    if tables > _MOST_TABLES[form]:
        raise ProblemError(
            f"has {tables:,} arrays and tables, more than the {_MOST_TABLES[form]:,} allowed",
            remedy="Put the numbers into a CSV file",
        )
    remedy = "Correct the syntax at that place"
    try:
        if form == "JSON":
            return json.loads(text, object_pairs_hook=distinct)
        # over keys of very many parts the parser would take the square of the time
        if max(part.count(".") for part in _BETWEEN_DOTS.findall(bare)) > 2 * MAX_DEPTH:
            raise _too_deep()
        return tomllib.loads(text)
    except json.JSONDecodeError as error:
        said = f"{error.msg} (at line {error.lineno}, column {error.colno})"
        raise ProblemError(f"is not valid JSON: {said}", remedy=remedy) from error
    except RecursionError as error:
        raise _too_deep() from error
    except ValueError as error:
        if not isinstance(error, tomllib.TOMLDecodeError):
            remedy = "Correct that value"
        elif any(mark in bare for mark in "“”„‘’"):
            remedy = 'Write quotes straight, as "uniform": these are those of a text'
        raise ProblemError(f"is not valid {form}: {error}", remedy=remedy) from error


def _check_values(document: Any) -> None:
    """Bound the depth and the integers, and refuse text that cannot be written as UTF-8."""
    level = [document]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                below += [*value, *value.values()]
            elif isinstance(value, list):
                below.extend(value)
            elif isinstance(value, str):
                try:
                    value.encode()
                except UnicodeEncodeError as error:
                    raise ProblemError(
                        f"the text {value[:40]!a} has half of a surrogate pair",
                        remedy="Write the character itself",
                    ) from error
            elif isinstance(value, int) and not -_INTEGER_LIMIT <= value < _INTEGER_LIMIT:
                raise ProblemError(
                    "an integer does not fit into 64 bits", remedy="Write it as a float, like 1e30"
                )
        if not below:
            return
        level = below
    raise _too_deep()


def _too_deep() -> ProblemError:
    return ProblemError(f"nests deeper than {MAX_DEPTH} levels", remedy="Flatten the file")
