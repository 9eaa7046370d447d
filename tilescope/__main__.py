"""The command ``tilescope``, and ``python -m tilescope``: all that ``python -m ui`` does."""

from ui.__main__ import main

if __name__ == "__main__":
    main()
