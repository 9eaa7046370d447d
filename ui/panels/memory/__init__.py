"""The traffic between HBM and SRAM at the op on show."""
