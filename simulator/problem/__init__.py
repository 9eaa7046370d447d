"""The problem of a run: scenarios, inputs, masks, tiles, models, GPUs."""
