"""``python -P -m optmech_audit``."""

import sys

from optmech_audit.verdict import main

raise SystemExit(main(sys.argv[1:]))
