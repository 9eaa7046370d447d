"""Gives a run another mask: at once, or after asking for the file in which to save its blocks."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtWidgets import QFileDialog, QWidget

from simulator.problem.masked_file import masked_scenario, needs_file, write_masked
from simulator.problem.masks import Mask
from ui.session.session import Session
from ui.session.tasks import Report


def use_mask(parent: QWidget, session: Session, name: str, mask: Mask) -> None:
    """Propose the run's scenario with another mask; blocks go into a copy of its input.

    A mask in the input file is replaced, too: the copy is without it.

    Nothing is asked if the run can have no blocks: `MaskPainting.refused` says why.
    """
    trace, what = session.trace, f"mask: {name}"
    if trace is None:
        return
    if not needs_file(trace.workload, mask):
        session.propose(masked_scenario(trace.workload, mask), what)
        return
    if not session.painting.fits():
        return
    said, _ = QFileDialog.getSaveFileName(
        parent, "Save the mask with its input", f"{name.partition(',')[0].lower()}.safetensors",
        "Tensors (*.safetensors)",
    )  # fmt: skip
    if not said:
        return
    path = Path(said)
    path = path if path.suffix else path.with_suffix(".safetensors")

    def job(report: Report) -> None:
        write_masked(trace.workload, mask, path)

    def done(_: None) -> None:
        session.propose(masked_scenario(trace.workload, mask, path), what)

    session.tasks.start("mask file", "writing the mask", job, done)
