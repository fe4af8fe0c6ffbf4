"""How a layer's loops are arranged: the schedule of generated loops, and register blocks."""
