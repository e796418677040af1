"""Results on disk as they come, one line a design; what is there is not done again."""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import platform
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent.parent / "results" / "privacy_games"

Record = dict[str, Any]


def key(**task: Any) -> str:
    """Names a task by everything that decides its result."""
    return json.dumps(task, sort_keys=True)


@dataclass
class Store:
    """One file of JSON lines. Several processes may append to it. What has been packed lies beside
    it, compressed."""

    path: Path
    records: dict[str, Record] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        if self.packed.exists():
            lines = gzip.decompress(self.packed.read_bytes()).decode().splitlines() + lines
        for line in lines:
            record = json.loads(line)
            self.records[key(**record["task"])] = record

    @property
    def packed(self) -> Path:
        return self.path.with_suffix(".jsonl.gz")

    def pack(self) -> None:
        """Compress everything there is, the same bytes for the same records."""
        text = "".join(json.dumps(record) + "\n" for record in self.records.values())
        whole = self.packed.with_suffix(".part")
        whole.write_bytes(gzip.compress(text.encode(), mtime=0))
        whole.replace(self.packed)
        self.path.unlink(missing_ok=True)

    def find(self, task: Record) -> Record | None:
        return self.records.get(key(**task))

    def add(self, task: Record, result: Record) -> Record:
        record = {"task": task, **result, **about()}
        self.records[key(**task)] = record
        with self.path.open("a") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            stream.write(json.dumps(record) + "\n")
        return record


def about() -> Record:
    """The machine and what ran on it."""
    return {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python "
        f"{platform.python_version()}, optmech {version('optmech')}",
        "load": round(os.getloadavg()[0], 1),
    }
