"""Which query heads share which keys and values."""
