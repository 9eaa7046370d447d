"""``python -m ui``."""

import gc
import os
import sys
import warnings
from typing import NoReturn


def main() -> NoReturn:
    """Do what the command line says, and end the process."""
    gc.disable()  # modules stay: to look for garbage among them takes a tenth of the start
    try:
        from ui.app.cli import COMMANDS, leave
        from ui.app.cli import main as obey
    except KeyboardInterrupt:  # Ctrl+C while the first modules are read
        os._exit(130)
    if {*sys.argv[1:2]} & {*COMMANDS, "--shards"}:
        gc.enable()  # a window has a collector of its own
    if not sys.warnoptions:  # of NumPy, about what float32 cannot hold: the answer says it
        warnings.filterwarnings("ignore", r".* encountered in ", RuntimeWarning)
    leave(obey(sys.argv[1:]))


if __name__ == "__main__":
    main()
