"""Workers of Dask are told to hand back every freed array, and do not while they solve."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

FAULTS = """
import ctypes, os, resource, numpy as np
from optmech_sweeps import worker
from optmech_sweeps.worker import Job

# as Dask starts its workers; from the start it would make all of these imports slow
os.environ["MALLOC_TRIM_THRESHOLD_"] = "65536"
assert ctypes.CDLL(None).mallopt(-1, 65536) == ctypes.CDLL(None).mallopt(-3, 131072) == 1

class Nothing:
    def build(self):
        raise MemoryError

{prepared}

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(50):
        np.ones(1 << 17)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults()
print(faults())
"""
PREPARED = "assert not worker.run(Job(0, Nothing(), None)).design"


def faults(prepared: str) -> int:
    """Pages that 50 arrays of 1 MiB, one after the other, are given by the system."""
    done = subprocess.run(
        [sys.executable, "-c", FAULTS.format(prepared=prepared)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only the GNU C library is told")
def test_a_worker_keeps_the_memory_of_its_arrays() -> None:
    pages = 50 * (1 << 20) // os.sysconf("SC_PAGE_SIZE")
    assert faults("") >= pages // 2  # what it costs without: otherwise nothing is tested here
    assert faults(PREPARED) < pages // 50
