"""A block behind a serial line that speaks the firmware's grammar."""
