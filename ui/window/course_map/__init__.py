"""The map of the course: all lessons by part, what each needs, and three paths through them."""
