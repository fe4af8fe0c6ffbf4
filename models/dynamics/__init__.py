"""Oscillator dynamics of both papers: flows, equilibria, integrators, failures, order, energies.

Lohe's flow on the sphere is that of Pasqualetti and Guo, "Attention by Synchronization in Coupled
Oscillator Networks", 2026; Kuramoto's on the circle that of Nunley, "Kuramoto Attention", 2026.
Angles are in radians; time has no unit, as |h| times time is a pure number.
"""

from __future__ import annotations

from entrain.models.dynamics.energy import (
    coherence_energy,
    pull_energy,
    retrieval_objective,
    retrieval_weights,
)
from entrain.models.dynamics.equilibria import (
    angle_after,
    settling_time,
    stable_equilibrium,
    state_after,
    unstable_equilibrium,
)
from entrain.models.dynamics.failures import (
    cap_probability,
    failing_angle,
    failure_probability,
    gaussian_failure_probability,
    weak_field_probability,
)
from entrain.models.dynamics.flows import (
    circular_mean,
    kuramoto_flow,
    kuramoto_flow_by_mean,
    lohe_flow,
    phase_flow,
)
from entrain.models.dynamics.integrators import Velocity, adaptive, euler, euler_on_sphere
from entrain.models.dynamics.order import global_order, local_order, weighted_order
from entrain.models.dynamics.sphere import angle_between, random_states, vector_of_phase

__all__ = [
    "Velocity",
    "adaptive",
    "angle_after",
    "angle_between",
    "cap_probability",
    "circular_mean",
    "coherence_energy",
    "euler",
    "euler_on_sphere",
    "failing_angle",
    "failure_probability",
    "gaussian_failure_probability",
    "global_order",
    "kuramoto_flow",
    "kuramoto_flow_by_mean",
    "local_order",
    "lohe_flow",
    "phase_flow",
    "pull_energy",
    "random_states",
    "retrieval_objective",
    "retrieval_weights",
    "settling_time",
    "stable_equilibrium",
    "state_after",
    "unstable_equilibrium",
    "vector_of_phase",
    "weak_field_probability",
    "weighted_order",
]
