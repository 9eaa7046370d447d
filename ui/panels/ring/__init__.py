"""Ring attention over simulated devices: the Ring dock."""
