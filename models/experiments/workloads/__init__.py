"""The tasks of the papers, one a file, and the registry by which experiments name them.

A workload is imported when an experiment is run, not before: listing experiments needs no torch.
A workload whose measurement changed, though its settings are spelled as before, says so with a
class attribute ``version: ClassVar[int]``, one higher than it was (1 where there is none).
"""

from __future__ import annotations

import importlib
from dataclasses import is_dataclass
from typing import TYPE_CHECKING

from entrain.deploy.errors import UsageError

if TYPE_CHECKING:
    from entrain.models.experiments.workload import Workload

# Name in an experiment's file: module and class.
WORKLOADS: dict[str, str] = {
    "agreement": "entrain.models.experiments.workloads.agreement:Agreement",
    "agreement-probe": "entrain.models.experiments.workloads.agreement_probe:AgreementProbe",
    "keyword": "entrain.models.experiments.workloads.keyword:Keyword",
    "words": "entrain.models.experiments.workloads.words:Words",
    "characters": "entrain.models.experiments.workloads.characters:Characters",
    "flow": "entrain.models.experiments.workloads.flow:Flow",
    "cost": "entrain.models.experiments.workloads.cost:Cost",
}


def find_workload(name: str) -> type[Workload]:
    """The class of the workload called ``name``.

    Raises:
        UsageError: there is no such workload, or it cannot be imported.
    """
    if name not in WORKLOADS:
        raise UsageError(
            f"there is no workload {name!r}", remedy=f"workloads there are: {', '.join(WORKLOADS)}"
        )
    module, _, attribute = WORKLOADS[name].partition(":")
    try:
        found: type[Workload] = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UsageError(
            f"the workload {name!r} cannot be imported: {error}",
            where=WORKLOADS[name],
            remedy="install entrain-edge again",
        ) from error
    if not is_dataclass(found):
        raise TypeError(f"{WORKLOADS[name]} is not a dataclass")
    return found
