"""Widgets of the docks: they hold what the user points at and call painters."""
