"""``python -P -m optmech.audit``."""

import sys

from optmech.audit.verdict import main

raise SystemExit(main(sys.argv[1:]))
