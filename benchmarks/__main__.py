"""``python -m privspan.bench``."""

import sys

from privspan.bench import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
