"""``python -m privspan.audit``."""

import sys

from privspan.audit.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
