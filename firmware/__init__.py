"""Sources of the firmware, as package data."""
