"""From DSLX to Verilog: the blocks as procs, their memories and streams."""
