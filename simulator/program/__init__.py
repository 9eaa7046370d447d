"""Tile programs: the visits of a run, the ops of each, what they move, and the next step."""
