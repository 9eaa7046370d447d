"""Tilescope's window, commands and pictures."""
