"""The KV cache: its growth, and the bytes that decoding a token moves."""
