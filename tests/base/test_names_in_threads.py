"""Names that several threads ask for first."""

from __future__ import annotations

import subprocess
import sys

EVERY_NAME = """
import threading
import optmech as om

names = [name for name in dir(om) if not name.startswith("_")]
start, missed = threading.Barrier(8), []

def ask(k):
    start.wait()
    for name in names[k:] + names[:k]:
        try:
            getattr(om, name)
        except Exception as error:
            missed.append(f"{name}: {error}")

asking = [threading.Thread(target=ask, args=(5 * k,)) for k in range(8)]
for thread in asking:
    thread.start()
for thread in asking:
    thread.join()
print(len(names), missed)
"""


def test_threads_that_ask_for_names_at_once_find_all_of_them() -> None:
    """Half-made modules were given to those who came second: four names were missing in each of
    three processes."""
    found = subprocess.run(
        [sys.executable, "-c", EVERY_NAME], capture_output=True, text=True, timeout=120, check=True
    )
    count, missed = found.stdout.split(maxsplit=1)
    assert int(count) >= 50
    assert missed.strip() == "[]"
