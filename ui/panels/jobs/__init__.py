"""What heads do: their jobs, how unlike they are, and how they come about in training."""
