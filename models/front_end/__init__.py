"""The front end: the firmware's own C, called from Python."""
