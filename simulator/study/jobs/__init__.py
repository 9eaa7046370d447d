"""Jobs of heads, and how they come about in a small trained model: the Jobs dock."""
