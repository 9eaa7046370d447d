"""What the frozen program starts with: `python -m ui`, whose words are in `ui.cli`."""

import sys

from ui.cli import leave, main

leave(main(sys.argv[1:]))
