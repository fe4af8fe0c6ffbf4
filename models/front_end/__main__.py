"""``python -m entrain.models.front_end``: fetch what the front end needs, and compile it."""

from __future__ import annotations

import sys

from entrain.deploy.errors import EntrainError
from entrain.models.front_end.library import load

try:
    load()
except EntrainError as error:
    sys.exit(f"{error}")
