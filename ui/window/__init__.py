"""The window: its docks, layouts, menus, messages, and what the File menu does."""
