"""Measurements of this machine and this version, each beside a floor in the same run."""
