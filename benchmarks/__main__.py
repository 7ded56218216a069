"""``python -m benchmarks``, from the root of a checkout."""

import sys

from privspan.cli import main

if __name__ == "__main__":
    sys.exit(main(["bench", *sys.argv[1:]]))
