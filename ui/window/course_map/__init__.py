"""The map of the course: all lessons by part, the needs of each, and three paths through them."""
