"""From a trained network to a measured device."""
