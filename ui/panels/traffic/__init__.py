"""The requested bytes over the whole run."""
