"""What the window is about, with no widget: scenario, run, cursor, undo, and work in threads."""
