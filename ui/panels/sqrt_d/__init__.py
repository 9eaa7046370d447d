"""The experiment that shows why scores are divided by √d."""
