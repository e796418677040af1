"""``python -m optmech``."""

from optmech.cli.main import entry

if __name__ == "__main__":
    entry()
