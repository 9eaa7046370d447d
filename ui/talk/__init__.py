"""Lessons and talks: playing, presenting, pointing, the speaker's window, adding a step."""
