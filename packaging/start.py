"""What the frozen program starts with: `python -m ui`, whose words are in `ui.app.cli`."""

import os
import sys

try:
    from ui.app.cli import leave, main
except KeyboardInterrupt:  # Ctrl+C while the first modules are read
    os._exit(130)

leave(main(sys.argv[1:]))
