"""What is learned: attention mechanisms, networks, data sets and their training."""
