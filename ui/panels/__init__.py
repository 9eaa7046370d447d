"""The widgets of the docks: they keep what the user points at, and call painters."""
