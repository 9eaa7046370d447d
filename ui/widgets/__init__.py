"""Controls and surfaces that more than one panel or window uses."""
