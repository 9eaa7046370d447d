"""The order of tokens: shuffling them, and which token can hear of which."""
