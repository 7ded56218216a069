"""``python -m privspan``: the same as the command ``privspan``."""

import sys

from privspan.cli import main

if __name__ == "__main__":
    sys.exit(main())
