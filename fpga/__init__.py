"""The oscillator-settling block for FPGAs: specification, sources, flow and boards."""
