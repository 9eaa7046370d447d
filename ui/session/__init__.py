"""What the window is about, without widgets: scenario, run, cursor, undo, and work in threads."""
