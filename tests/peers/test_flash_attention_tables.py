"""FlashAttention's case tables beside PyTorch's operations in the case's dtype.

Errors are held as in its tests: at most so many times the error of PyTorch, here on the CPU. The
tables are those of tests/helpers/flash_attention_tables.
"""

from collections.abc import Callable

import numpy as np
import pytest

from tests.helpers.flash_attention_tables import TABLES, Case, Errors, Rows, errors

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.peers

CASES = [(case, allowed) for cases, allowed in TABLES.values() for case in cases]


def by_pytorch(case: Case, head: int, q: Rows, k: Rows, v: Rows) -> Rows:
    """Return O of a head, (Nq, dv), made in the case's dtype with K scaled, not Q."""
    dtype = getattr(torch, case.dtype)
    q_there, k_there, v_there = (torch.tensor(x, dtype=dtype) for x in (q, k, v))
    s = q_there @ (k_there / q.shape[1] ** 0.5).T
    if case.softcap:
        s = torch.tanh(s / case.softcap) * case.softcap
    hidden = torch.tensor(case.hidden())
    s = s.masked_fill(hidden, float("-inf"))
    if case.alibi:
        s = s + torch.tensor(case.biases(head), dtype=torch.float32)
    p = torch.softmax(s, dim=-1).to(dtype).masked_fill(hidden.all(dim=1, keepdim=True), 0.0)
    o: Rows = (p @ v_there).double().numpy()
    return o


@pytest.mark.parametrize(("case", "allowed"), CASES, ids=[str(case)[:80] for case, _ in CASES])
def test_errors_are_at_most_some_times_those_of_pytorch(
    case: Case, allowed: Callable[[Case, Errors], float]
) -> None:
    found = errors(case, by_pytorch)
    assert np.isfinite(found.plain)
    assert found.ours <= allowed(case, found)
