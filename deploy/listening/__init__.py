"""Words in a stream of sound: settings, the same C on host and board, tuning, and the measure."""
