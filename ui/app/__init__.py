"""The command line and what it starts. Nobody imports it."""
