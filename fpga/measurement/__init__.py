"""What the blocks cost: cycles, accesses, cells, clocks, toggles."""
