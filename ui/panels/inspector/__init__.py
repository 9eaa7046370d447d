"""What attention reads: maps of all heads, one row, its output."""
