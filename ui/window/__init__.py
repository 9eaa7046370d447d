"""The window: its docks, layouts, menus, messages, and the actions of the File menu."""
