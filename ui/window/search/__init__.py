"""One search over all that the window has: what can be found, how, and the box that shows it.

It is imported when the box is first opened.
"""
