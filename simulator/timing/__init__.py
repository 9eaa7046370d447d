"""Time and DRAM traffic of runs on a GPU, by model (docs/time-model.md). Nothing is measured."""
