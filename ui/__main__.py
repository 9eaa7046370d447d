"""``python -m ui``."""

import sys

from ui.cli import leave, main

if __name__ == "__main__":
    leave(main(sys.argv[1:]))
