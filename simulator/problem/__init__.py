"""What is computed and on what: scenarios, inputs, masks, tiles, models, GPUs."""
