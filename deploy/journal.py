"""results.json while a comparison is measured: whole after every row."""

from __future__ import annotations

import threading
from pathlib import Path

from entrain.deploy.comparisons import Predictions, compare
from entrain.deploy.errors import ResultsError
from entrain.deploy.results import Environment, Results
from entrain.deploy.results_file import read_results, write_results


class Journal:
    """results.json as it grows: written anew, whole, with every row; not before the first.

    A whole one that stands there from an earlier comparison is kept as results.previous.json.

    Args:
        path: the file.
        made_with: what the figures are made with.
    """

    def __init__(self, path: Path, made_with: Environment) -> None:
        self._path = path
        self._made_with = made_with
        self._found: dict[int, Predictions] = {}
        self._lock = threading.Lock()

    def add(self, place: int, measured: Predictions) -> None:
        """Put a row in its place among the others and write them all."""
        with self._lock:
            if not self._found:
                _keep_previous(self._path)
            self._found[place] = measured
        self.write("not finished")

    def write(self, stopped: str | None) -> Results:
        """Write what there is, and why there is no more of it; None if that is all."""
        with self._lock:
            found = [self._found[place] for place in sorted(self._found)]
            results = Results(
                environment=self._made_with,
                results=tuple(item.row for item in found),
                comparisons=compare(found),
                stopped=stopped,
            )
            if found:
                write_results(self._path, results)
            return results


def _keep_previous(path: Path) -> None:
    """Set a finished comparison's results aside, so that one cut short does not replace them."""
    try:
        finished = path.is_file() and read_results(path).stopped is None
    except ResultsError:
        return  # nothing that could be lost
    if finished:
        path.replace(path.with_name("results.previous.json"))
