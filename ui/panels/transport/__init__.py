"""The place in the run, and everything that moves it."""
