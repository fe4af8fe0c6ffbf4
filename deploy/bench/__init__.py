"""Fixed operators on fixed inputs: what they cost, beside what other compilers make of them."""
