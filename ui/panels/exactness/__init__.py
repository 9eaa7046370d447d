"""How far a run is from float64, row by row, and the faults that can be switched on."""
