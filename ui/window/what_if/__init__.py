"""The strip that asks what if: its fields, what it says of a change, where that stands."""
