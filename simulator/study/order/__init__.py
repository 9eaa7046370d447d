"""What the order of tokens does: shuffling them, and which of them can hear of which."""
