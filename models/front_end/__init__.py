"""The front end: the firmware's own C, called from Python."""

from entrain.models.front_end.library import STEP, log_mel, log_mel_steps

__all__ = ["STEP", "log_mel", "log_mel_steps"]
