"""The session behind the window, without widgets: scenario, run, cursor, undo, threads."""
