"""What runs the blocks: Verilator, Icarus, the vendor's C++, XLS's compiler for this machine."""
