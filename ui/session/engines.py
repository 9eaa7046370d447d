"""Makes traces of scenarios: chooses the engine, and keeps inputs that have not changed."""

from __future__ import annotations

from collections.abc import Callable

from kernels.devices.registry import FAULTS_NOTE, choose_engine
from simulator.engines.protocol import Engine
from simulator.problem.scenario import Scenario
from simulator.problem.workload import Inputs, Workload, read_inputs, resolve
from simulator.run.trace import Trace, trace_of

Choose = Callable[[str, Workload, Inputs], tuple[Engine, str]]


class Engines:
    """Makes the engines of a session.

    name: ``auto``, ``numpy``, ``cupy`` or ``host``.
    choose: returns the engine that the name means for a workload, and the reason.
    """

    def __init__(self, name: str, choose: Choose = choose_engine) -> None:
        self.name = name
        self._choose = choose
        self.note = ""  # in words, why a device is no longer used; empty if none has failed
        self._notes: dict[object, str] = {}  # why `auto` computes with NumPy, by kernel
        self._inputs: tuple[object, Inputs] | None = None

    def trace(self, scenario: Scenario) -> Trace:
        """Build a trace (in the worker); inputs that did not change are kept."""
        workload = resolve(scenario)
        key = _input_key(workload)
        if self._inputs is None or self._inputs[0] != key:
            self._inputs = (key, read_inputs(workload))
        return trace_of(workload, workload.posed(self._inputs[1]), self.make)

    def make(self, workload: Workload, inputs: Inputs) -> Engine:
        """Make the engine of a workload, and remember the reason for the choice."""
        engine, note = self._choose(self.name, workload, inputs)
        if not workload.faults.on:
            self._notes[_kernel_key(workload)] = note
        return engine

    def why(self, workload: Workload) -> str:
        """Return in words why this engine was chosen; empty if there is no reason."""
        if workload.faults.on:
            return FAULTS_NOTE
        return self.note or self._notes.get(_kernel_key(workload), "")

    def give_up(self, engine: Engine, error: Exception) -> None:
        """Compute with NumPy from now on, because a device has failed."""
        self.name = "numpy"
        self.note = f"{engine.device} failed ({error})"


def _kernel_key(w: Workload) -> object:
    """Return the values on which a kernel and its shared memory depend."""
    return (w.algorithm, w.rows, w.cols, w.head_dim, w.value_dim, w.dtype, w.seqlen_k)


def _input_key(workload: Workload) -> object:
    """Return the values on which the result of `read_inputs` depends."""
    w, file = workload, workload.file
    said = w.scenario.input
    typed = (said.text, said.layer) if said.source == "sentence" else ()
    # A file need not have everything: the seed draws what it lacks.
    stamp = (str(w.scenario.seed), typed, file and (file.path, file.path.stat().st_mtime_ns))
    gate = w.rule.gate if w.rule else None
    made = w.position, w.feature_map, gate and (gate.name, gate.said(w.scenario.attention))
    shapes = w.input_shapes, w.latent, w.value_dim  # a latent says what the third shape means
    return (stamp, shapes, w.dtype, w.picked, w.kv_heads, made)
