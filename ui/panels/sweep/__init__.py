"""What other sizes and tiles would cost."""
