"""The lines that a session writes to the log."""

from __future__ import annotations

from simulator.base.errors import InputError
from simulator.run.trace import Trace
from ui.safety.log import LOG
from ui.session.session import Session


def follow(session: Session) -> None:
    """Write the scenarios that a session shows, their engines and why, and refused scenarios."""

    def tell_trace(trace: Trace) -> None:
        w = trace.workload
        why = f" ({session.why})" if session.why else ""
        LOG.info(
            "scenario %s: %s, %s, %d heads, %d x %d, d = %d; engine %s, %s%s",
            session.path or "without a file", w.algorithm, w.dtype, w.heads, w.seqlen_q,
            w.seqlen_k, w.head_dim, trace.engine.name, trace.engine.device, why,
        )  # fmt: skip

    def tell_refusal(error: InputError) -> None:
        LOG.info("refused: %s", error)

    session.trace_changed.connect(tell_trace)
    session.refused.connect(tell_refusal)
    session.fell_back.connect(LOG.warning)
