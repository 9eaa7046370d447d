"""The KV cache: how it grows, and what decoding a token moves."""
