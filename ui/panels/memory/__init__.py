"""The traffic between HBM and SRAM at the current op."""
