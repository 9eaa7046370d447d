"""The strip that asks what if: its fields, its words about a change, their places."""
