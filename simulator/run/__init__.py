"""A run that can be entered anywhere, and all that is read from it at a cursor."""
