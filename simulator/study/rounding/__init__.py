"""Numbers for captions about P and S in the storage type; Exactness shows the same."""
