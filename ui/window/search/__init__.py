"""One search over the whole window: its entries, how they are found, and the box for them.

The package is imported when the box is first opened.
"""
