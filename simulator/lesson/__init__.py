"""Lessons: reading and writing them, their places in a run, their numbers."""
