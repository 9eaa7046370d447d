"""Lessons and talks: playing, presenting, pointing, the speaker's window, writing a step."""
