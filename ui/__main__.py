"""``python -m ui``."""

import os
import sys

if __name__ == "__main__":
    try:
        from ui.app.cli import leave, main
    except KeyboardInterrupt:  # Ctrl+C while the first modules are read
        os._exit(130)
    leave(main(sys.argv[1:]))
