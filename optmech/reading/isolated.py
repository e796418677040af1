"""Reading Parquet, NetCDF and meshes in a process of its own, with limits on its time and memory.

The libraries that read them trust what a file says of itself: a damaged file may loop for ever,
claim any amount of memory, print to standard error or end the process. Here that is the child's end
only, and an error that says so.
"""

import io
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from optmech.errors import ProblemError

_SECONDS = 60
"""For the child in all, on a busy machine; for computing it has far less."""
_SIGXCPU = 24
_CHILD = """\
import sys
sys.path[:] = {path!r}
from optmech.reading.isolated_reader import main
main()
"""


@dataclass(frozen=True)
class Found:
    """What a file holds: plain values, and arrays that they refer to by position."""

    values: dict[str, Any]
    arrays: list[np.ndarray]


def read_isolated(kind: str, path: Path, **options: object) -> Found:
    """What ``reading.isolated_reader`` finds in a file of its ``kind``: parquet, netcdf or mesh.
    Raises ProblemError on what is no such file, and where reading it takes too long or too much
    memory."""
    order = json.dumps({"kind": kind, "path": str(path.absolute()), **options})
    try:
        done = subprocess.run(
            [sys.executable, "-c", _CHILD.format(path=sys.path)],
            input=order.encode(),
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise _unusable(path, f"reading it takes more than {_SECONDS} s") from error
    except (OSError, ValueError) as error:
        raise _unusable(path, "its reader could not be run") from error
    if done.returncode == -_SIGXCPU:
        raise _unusable(path, "reading it does not end")
    try:
        found = _decoded(done.stdout)
    except (ValueError, EOFError, LookupError, TypeError) as error:
        status = done.returncode
        raise _unusable(path, f"its reader ended with status {status}") from error
    if "error" in found.values:
        raise ProblemError(
            str(found.values["error"]), where=path, remedy=str(found.values["remedy"])
        )
    return found


def encoded(values: dict[str, Any], arrays: list[np.ndarray]) -> bytes:
    """A child's answer: a line of JSON, then the arrays."""
    out = io.BytesIO()
    out.write(json.dumps({**values, "arrays": len(arrays)}).encode() + b"\n")
    for array in arrays:
        np.save(out, array, allow_pickle=False)
    return out.getvalue()


def _decoded(answer: bytes) -> Found:
    stream = io.BytesIO(answer)
    values = json.loads(stream.readline())
    arrays = [np.load(stream, allow_pickle=False) for _ in range(values["arrays"])]
    return Found(values, arrays)


def _unusable(path: Path, reason: str) -> ProblemError:
    return ProblemError(
        f"cannot be read: {reason}", where=path, remedy="Write the file again, or as CSV"
    )
