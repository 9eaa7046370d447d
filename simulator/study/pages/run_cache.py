"""The cache of a run in pages: the sequences of its batch, beside a stretch for each of them."""

from __future__ import annotations

from simulator.problem.paging import PageTable, batch_tables, pages_of
from simulator.problem.workload import Workload
from simulator.study.pages.pages import CacheStep, Request, Running, Server


def run_cache(w: Workload) -> tuple[Server, CacheStep, CacheStep] | None:
    """Return the cache of a run, as it is in pages and as it would be in stretches.

    There is room for a stretch for each sequence, each as long as the longest sequence; None for a
    run without pages.
    """
    if w.pages is None:
        return None
    lengths = w.scenario.batch.lengths or (w.seqlen_k,)
    tables: tuple[PageTable, ...] = (w.pages,)
    if w.scenario.batch.lengths:
        tables = batch_tables(lengths, w.page_size, w.scenario.input.seed)
    tables = tuple(table for table in tables if table.tokens)  # without tokens, nothing is held
    lengths = tuple(table.tokens for table in tables)
    longest, size = max(lengths, default=1), w.page_size
    room = max(pages_of(longest * len(lengths), size), w.pages.places) * size
    requests = tuple(Request(0, tokens, longest, (0,)) for tokens in lengths)
    in_pages = tuple(
        Running(n, 0, tokens, tokens, tuple(table.used.tolist()))
        for n, (tokens, table) in enumerate(zip(lengths, tables, strict=True))
    )
    in_stretches = tuple(
        Running(n, 0, tokens, tokens, (n * longest,)) for n, tokens in enumerate(lengths)
    )
    return (
        Server(size, room, requests),
        CacheStep(0, in_pages, 0, 0),
        CacheStep(0, in_stretches, 0, 0),
    )
