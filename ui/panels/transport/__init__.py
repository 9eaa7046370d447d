"""Where the run is, and everything that moves it."""
