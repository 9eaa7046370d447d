"""What captions say of P and S in the storage type; Exactness shows the same."""
