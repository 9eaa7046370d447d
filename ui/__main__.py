"""``python -m ui``."""

import os
import sys
import warnings

if __name__ == "__main__":
    try:
        from ui.app.cli import leave, main
    except KeyboardInterrupt:  # Ctrl+C while the first modules are read
        os._exit(130)
    if not sys.warnoptions:  # of NumPy, about what float32 cannot hold: the answer says it
        warnings.filterwarnings("ignore", r".* encountered in ", RuntimeWarning)
    leave(main(sys.argv[1:]))
