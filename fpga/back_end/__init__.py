"""From Verilog to a bitstream: synthesis, place and route, packing, writing to a board."""
