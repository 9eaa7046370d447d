"""Runs a tile program op by op in float64: the reference of every engine."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType

import numpy as np

from simulator.base.dtypes import F64
from simulator.problem.workload import Inputs
from simulator.program.op import Op
from simulator.program.state import Numbers, State
from simulator.program.tile_program import TileProgram, Visit


class Interpreter:
    """A tile program on a float64 state, in program order.

    left: tensors that an earlier pass has left in HBM, by name, (heads, Nq, ...): O and LSE, if a
        backward pass starts with them.
    """

    def __init__(
        self,
        program: TileProgram,
        inputs: Inputs,
        left: Numbers = MappingProxyType({}),
    ) -> None:
        self.program = program
        self.state = State(
            inputs.q, inputs.k, inputs.v,
            tensors=program.algorithm.tensors, splits=program.workload.splits,
            features=program.workload.sizes["feature"], projection=inputs.projection,
            sinks=program.workload.sinks, given=inputs.given(program.workload),
            inputs=program.algorithm.inputs,
            pages=program.workload.pages,
        )  # fmt: skip
        self.state.hbm |= {name: values.astype(np.float64) for name, values in left.items()}

    def steps(self) -> Iterator[tuple[Visit, int, Op]]:
        """Do the ops one by one; yield visit, op index and op after each.

        The results of the op are then in ``state.chip`` and ``state.hbm``.
        """
        for index in range(len(self.program)):
            visit = self.program.visit(index)
            for number, op in enumerate(self.program.ops(index)):
                op.apply(self.state)
                yield visit, number, op

    def run(self) -> None:
        """Do all ops."""
        for _ in self.steps():
            pass

    @property
    def output(self) -> F64:
        """O in HBM, (heads, Nq, dv) float64."""
        return self.state.tensor("O")
