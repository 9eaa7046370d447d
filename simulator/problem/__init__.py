"""What is to be computed and on what: scenarios, inputs, masks, tiles, models, GPUs."""
