"""P and S in the storage type: what that costs standard attention and FlashAttention."""
