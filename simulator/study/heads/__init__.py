"""Which query heads of a model share keys and values, and what sharing costs."""
