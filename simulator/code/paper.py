"""The papers' algorithms line by line, in our own words, as the ops cite them.

A text holds formulas between dollar signs, in LaTeX. The lines have the papers' numbers.

References: Dao, Fu, Ermon, Rudra, Ré 2022, "FlashAttention: Fast and Memory-Efficient Exact
Attention with IO-Awareness": Algorithm 0 (standard attention), Algorithm 1, Algorithm 2 (appendix
B). Dao 2023, "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning":
Algorithm 1 (forward pass), section 3.1, Algorithm 2 (backward pass). Dao, Haziza, Massa, Sizov
2023, "Flash-Decoding for long-context inference": its three steps. Kwon et al. 2023, "Efficient
Memory Management for Large Language Model Serving with PagedAttention": section 4.1. Katharopoulos,
Vyas, Pappas, Fleuret 2020, "Transformers are RNNs": equations 5, 7 and 10 to 17. Choromanski et al.
2021, "Rethinking Attention with Performers": lemma 1. Yang, Wang, Shen, Panda, Kim 2024, "Gated
Linear Attention Transformers with Hardware-Efficient Training": the chunkwise form.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache


class Role(StrEnum):
    """The meaning of a line for a run."""

    OP = "op"  # ops do its work
    SETUP = "setup"  # sizes and names, which are set before the first op
    TILE = "tile"  # the line begins or ends the inner loop: each turn is a visit
    BLOCK = "block"
    """The line begins or ends the outer loop, whose turn is a row block; flash1: a column block."""
    END = "end"  # the line comes after the last op


@dataclass(frozen=True, slots=True)
class PaperLine:
    """One line of an algorithm."""

    label: str  # its number, or a name from another source, such as ``§3.1``; empty for none
    level: int  # how many loops it is in
    text: str  # our words, with formulas between dollar signs
    role: Role  # its meaning for a run
    source: str  # how a citation of the line begins, up to the number


@dataclass(frozen=True, slots=True)
class Paper:
    """One algorithm of a paper."""

    title: str  # its place in the paper
    lines: tuple[PaperLine, ...]  # its lines, in order
    note: str  # differences to the lines above, in one or two sentences that the page shows


_OP, _SETUP, _TILE, _BLOCK, _END = Role.OP, Role.SETUP, Role.TILE, Role.BLOCK, Role.END


def _numbered(source: str, *lines: tuple[int, Role, str]) -> tuple[PaperLine, ...]:
    return tuple(
        PaperLine(str(number), level, text, role, source)
        for number, (level, role, text) in enumerate(lines, start=1)
    )


_NAIVE = _numbered(
    "Dao et al. 2022, Algorithm 0",
    (0, _OP, r"Load blocks of $Q$ and $K$ from HBM, compute $S = Q K^{\top}$, store $S$ in HBM"),
    (0, _OP, r"Load $S$ from HBM, compute $P = \mathrm{softmax}(S)$ by rows, store $P$ in HBM"),
    (0, _OP, r"Load blocks of $P$ and $V$ from HBM, compute $O = P V$, store $O$ in HBM"),
    (0, _END, r"Return $O$"),
)

_FLASH1 = _numbered(
    "Dao et al. 2022, Algorithm 1",
    (0, _SETUP, r"Block sizes $B_c = \lceil M / 4d \rceil$ and"
                r" $B_r = \min(\lceil M / 4d \rceil,\, d)$"),
    (0, _OP, r"In HBM, start with $O = 0$, $\ell = 0$ and $m = -\infty$"),
    (0, _SETUP, r"Cut $Q$ into $T_r$ blocks of $B_r$ rows, $K$ and $V$ into $T_c$ blocks"
                r" of $B_c$ rows"),
    (0, _SETUP, r"Cut $O$, $\ell$ and $m$ into $T_r$ blocks of $B_r$ rows"),
    (0, _BLOCK, r"For each column block $j = 1 \ldots T_c$:"),
    (1, _OP, r"Load $K_j$, $V_j$ from HBM to SRAM"),
    (1, _TILE, r"For each row block $i = 1 \ldots T_r$:"),
    (2, _OP, r"Load $Q_i$, $O_i$, $\ell_i$, $m_i$ from HBM to SRAM"),
    (2, _OP, r"Compute $S_{ij} = Q_i K_j^{\top}$"),
    (2, _OP, r"Compute $\tilde{m}_{ij} = \mathrm{rowmax}(S_{ij})$,"
             r" $\tilde{P}_{ij} = e^{S_{ij} - \tilde{m}_{ij}}$ and"
             r" $\tilde{\ell}_{ij} = \mathrm{rowsum}(\tilde{P}_{ij})$"),
    (2, _OP, r"Compute $m_i^{\mathrm{new}} = \max(m_i,\, \tilde{m}_{ij})$ and"
             r" $\ell_i^{\mathrm{new}} = e^{m_i - m_i^{\mathrm{new}}}\, \ell_i$"
             r" $+\; e^{\tilde{m}_{ij} - m_i^{\mathrm{new}}}\, \tilde{\ell}_{ij}$"),
    (2, _OP, r"Store $O_i \leftarrow \mathrm{diag}(\ell_i^{\mathrm{new}})^{-1}$"
             r" $\big( \mathrm{diag}(\ell_i)\, e^{m_i - m_i^{\mathrm{new}}} O_i$"
             r" $+\; e^{\tilde{m}_{ij} - m_i^{\mathrm{new}}} \tilde{P}_{ij} V_j \big)$ in HBM"),
    (2, _OP, r"Store $\ell_i \leftarrow \ell_i^{\mathrm{new}}$,"
             r" $m_i \leftarrow m_i^{\mathrm{new}}$ in HBM"),
    (1, _TILE, r"End for"),
    (0, _BLOCK, r"End for"),
    (0, _END, r"Return $O$"),
)  # fmt: skip
_FLASH1_MASK = PaperLine(
    "A2", 2, r"Where the mask hides pairs, set them to $-\infty$ in $S_{ij}$"
    r" (Algorithm 2, line 11)",
    _OP, "Dao et al. 2022, Algorithm 2, line 11",
)  # fmt: skip

_FLASH2 = _numbered(
    "Dao 2023, Algorithm 1",
    (0, _SETUP, r"Cut $Q$ into $T_r$ blocks of $B_r$ rows, $K$ and $V$ into $T_c$ blocks"
                r" of $B_c$ rows"),
    (0, _SETUP, r"Cut $O$ and the log-sum-exp $L$ into $T_r$ blocks of $B_r$ rows"),
    (0, _BLOCK, r"For each row block $i = 1 \ldots T_r$:"),
    (1, _OP, r"Load $Q_i$ from HBM to SRAM"),
    (1, _OP, r"On chip, start with $O_i^{(0)} = 0$, $\ell_i^{(0)} = 0$ and"
             r" $m_i^{(0)} = -\infty$"),
    (1, _TILE, r"For each column block $j = 1 \ldots T_c$:"),
    (2, _OP, r"Load $K_j$, $V_j$ from HBM to SRAM"),
    (2, _OP, r"Compute $S_i^{(j)} = Q_i K_j^{\top}$"),
    (2, _OP, r"Compute $m_i^{(j)} = \max(m_i^{(j-1)},\, \mathrm{rowmax}(S_i^{(j)}))$,"
             r" $\tilde{P}_i^{(j)} = e^{S_i^{(j)} - m_i^{(j)}}$ and"
             r" $\ell_i^{(j)} = e^{m_i^{(j-1)} - m_i^{(j)}}\, \ell_i^{(j-1)}$"
             r" $+\; \mathrm{rowsum}(\tilde{P}_i^{(j)})$"),
    (2, _OP, r"Compute $O_i^{(j)} = \mathrm{diag}(e^{m_i^{(j-1)} - m_i^{(j)}})\, O_i^{(j-1)}$"
             r" $+\; \tilde{P}_i^{(j)} V_j$"),
    (1, _TILE, r"End for"),
    (1, _OP, r"Compute $O_i = \mathrm{diag}(\ell_i^{(T_c)})^{-1}\, O_i^{(T_c)}$"),
    (1, _OP, r"Compute $L_i = m_i^{(T_c)} + \log \ell_i^{(T_c)}$"),
    (1, _OP, r"Store $O_i$ in HBM, block $i$ of $O$"),
    (1, _OP, r"Store $L_i$ in HBM, block $i$ of $L$"),
    (0, _BLOCK, r"End for"),
    (0, _END, r"Return $O$ and $L$"),
)  # fmt: skip
_FLASH2_MASK = PaperLine(
    "§3.1", 2, r"Where the mask hides pairs, set them to $-\infty$ in $S_i^{(j)}$ (section 3.1)",
    _OP, "Dao 2023, section 3.1",
)  # fmt: skip

_BACKWARD = _numbered(
    "Dao 2023, Algorithm 2",
    (0, _SETUP, r"Cut $Q$ into $T_r$ blocks of $B_r$ rows, $K$ and $V$ into $T_c$ blocks"
                r" of $B_c$ rows"),
    (0, _SETUP, r"Cut $O$, $dO$ and the log-sum-exp $L$ into $T_r$ blocks of $B_r$ rows"),
    (0, _OP, r"In HBM, start with $dQ = 0$; cut $dQ$ into $T_r$ blocks, $dK$ and $dV$ into $T_c$"),
    (0, _OP, r"Compute $D = \mathrm{rowsum}(dO \circ O)$ and store it in HBM"),
    (0, _BLOCK, r"For each column block $j = 1 \ldots T_c$:"),
    (1, _OP, r"Load $K_j$, $V_j$ from HBM to SRAM"),
    (1, _OP, r"On chip, start with $dK_j = 0$ and $dV_j = 0$"),
    (1, _TILE, r"For each row block $i = 1 \ldots T_r$:"),
    (2, _OP, r"Load $Q_i$, $dO_i$, $L_i$, $D_i$ from HBM to SRAM"),
    (2, _OP, r"Compute $S_i^{(j)} = Q_i K_j^{\top}$ again"),
    (2, _OP, r"Compute $P_i^{(j)} = e^{S_i^{(j)} - L_i}$"),
    (2, _OP, r"Compute $dV_j \leftarrow dV_j + (P_i^{(j)})^{\top} dO_i$"),
    (2, _OP, r"Compute $dP_i^{(j)} = dO_i V_j^{\top}$"),
    (2, _OP, r"Compute $dS_i^{(j)} = P_i^{(j)} \circ (dP_i^{(j)} - D_i)$"),
    (2, _OP, r"Load $dQ_i$ from HBM, add $dS_i^{(j)} K_j$ to it and store it in HBM"),
    (2, _OP, r"Compute $dK_j \leftarrow dK_j + (dS_i^{(j)})^{\top} Q_i$"),
    (1, _TILE, r"End for"),
    (1, _OP, r"Store $dK_j$ and $dV_j$ in HBM"),
    (0, _BLOCK, r"End for"),
    (0, _OP, r"Return $dK$, $dV$ and $dQ$, of which the sums in float32 are loaded, scaled"
             r" and stored as wide as $Q$"),
)  # fmt: skip

_NAIVE_BACKWARD = _numbered(
    "Dao et al. 2022, Algorithm 3",
    (0, _OP, r"Load $P$, $dO$ by blocks from HBM, compute $dV = P^{\top} dO$, write $dV$ to HBM"),
    (0, _OP, r"Load $dO$, $V$ by blocks from HBM, compute $dP = dO\, V^{\top}$,"
             r" write $dP$ to HBM"),
    (0, _OP, r"Read $P$, $dP$ from HBM, compute $dS_{ij} = P_{ij}"
             r" (dP_{ij} - \sum_l P_{il} dP_{il})$, write $dS$ to HBM"),
    (0, _OP, r"Load $dS$, $K$ by blocks from HBM, compute $dQ = dS\, K$, write $dQ$ to HBM"),
    (0, _OP, r"Load $dS$, $Q$ by blocks from HBM, compute $dK = dS^{\top} Q$, write $dK$ to HBM"),
    (0, _END, r"Return $dQ$, $dK$ and $dV$"),
)  # fmt: skip

_JOIN = "Dao et al. 2023, Flash-Decoding, step"


def _dealt_out(what: str, load: PaperLine) -> tuple[PaperLine, ...]:
    """Return Flash-Decoding's lines for the keys and values `what`; `load` loads a tile."""
    return (
        PaperLine(
            "step 1", 0, rf"Deal {what} out to the splits: a run of column blocks each. One that"
            r" sees nothing leaves $O = 0$ and $L = -\infty$",
            _OP, f"{_JOIN} 1",
        ),
        PaperLine("", 0, r"For each split of each row block, all at once:", _BLOCK, ""),
        *_FLASH2[3:5],
        PaperLine(
            "6", 1, r"For each column block $j$ of the split:", _TILE, "Dao 2023, Algorithm 1"
        ),
        load,
        _FLASH2[7],
        _FLASH2_MASK,
        *_FLASH2[8:13],
        PaperLine(
            "step 2", 1, r"Store $O_i$ and $L_i$ of the split in HBM, in float32: its"
            r" $O_{\mathrm{partial}}$ and $\mathrm{LSE}_{\mathrm{partial}}$",
            _OP, f"{_JOIN} 2",
        ),
        PaperLine("", 0, r"End for", _BLOCK, ""),
        PaperLine(
            "step 3", 0, r"Of every row block, load $O_s$ and $L_s$ of its splits $s$, compute"
            r" $m = \max_s L_s$, $w_s = e^{L_s - m}$ and $\ell = \Sigma_s\, w_s$, store"
            r" $O = \ell^{-1}\, \Sigma_s\, w_s O_s$ and $L = m + \log \ell$",
            _OP, f"{_JOIN} 3",
        ),
        PaperLine("", 0, r"Return $O$ and $L$", _END, ""),
    )  # fmt: skip


_SPLIT_KV = _dealt_out("$K$ and $V$", _FLASH2[6])
_MLA_PAPER = "Liu et al. 2024"
_MLA = _dealt_out(
    "the latent $C$",
    PaperLine(
        "§2.1.2", 2, r"Load $C_j$ from HBM to SRAM, once: $K_j = C_j$, and $V_j$ is the first"
        r" numbers of its rows",
        _OP, f"{_MLA_PAPER}, section 2.1.2",
    ),
)  # fmt: skip

_LOOK_UP = PaperLine(
    "§4.1", 2, r"Look up in the block table where each page of the tile lies: its place is"
    r" $\mathrm{table}[p]$ (section 4.1)",
    _OP, "Kwon et al. 2023, section 4.1",
)  # fmt: skip
_PAGED = (*_SPLIT_KV[:5], _LOOK_UP, *_SPLIT_KV[5:])

_LINEAR_PAPER = "Katharopoulos et al. 2020"
_LINEAR = (
    PaperLine(
        "eq. 7", 0, r"$\phi(x) = \mathrm{elu}(x) + 1$, of each row of $Q$ and $K$"
        r" when it has been loaded",
        _OP, f"{_LINEAR_PAPER}, equation 7",
    ),
    PaperLine(
        "lemma 1", 0, r"or Performer's $\phi(x) = e^{\omega x' - |x'|^2 / 2} / \sqrt{r}$,"
        r" $x' = x\, d^{-1/4}$, for each of $r$ random directions $\omega$",
        _OP, "Choromanski et al. 2021, lemma 1",
    ),
    PaperLine(
        "eq. 16", 0, r"Causal: on chip, start with the state $S = 0$, $z = 0$",
        _OP, f"{_LINEAR_PAPER}, equations 16 and 17",
    ),
    PaperLine("", 0, r"For each chunk $i$ of $B_c$ rows and keys:", _BLOCK, ""),
    PaperLine(
        "chunk", 1, r"Load $Q_i$, $K_i$, $V_i$. Of the keys in the chunk, with $M$ the mask:"
        r" $P = M \odot \phi(Q_i)\, \phi(K_i)^{\top}$, which adds $P V_i$ to the output and"
        r" its row sums to $\ell_i$",
        _OP, "Yang et al. 2024, chunkwise form",
    ),
    PaperLine(
        "eq. 12", 1, r"Of all keys before it: $O_i = \phi(Q_i)\, S$ and $\ell_i = \phi(Q_i)\, z$."
        r" With both added up, $O_i \leftarrow \mathrm{diag}(\ell_i)^{-1} O_i$, stored in HBM",
        _OP, f"{_LINEAR_PAPER}, equation 12",
    ),
    PaperLine(
        "eq. 10", 1, r"$S \leftarrow S + \phi(K_i)^{\top} V_i$ and"
        r" $z \leftarrow z + \phi(K_i)^{\top} 1$",
        _OP, f"{_LINEAR_PAPER}, equations 10 and 11",
    ),
    PaperLine("", 0, r"End for", _BLOCK, ""),
    PaperLine(
        "eq. 5", 0, r"Without a mask: sum $S$ and $z$ over all keys of a KV head, store them"
        r" in HBM;"
        r" then of each row block load $S$, $z$ and $Q_i$ and store"
        r" $O_i = \mathrm{diag}(\phi(Q_i)\, z)^{-1} \phi(Q_i)\, S$",
        _OP, f"{_LINEAR_PAPER}, equation 5",
    ),
    PaperLine("", 0, r"Return $O$", _END, ""),
)  # fmt: skip

_TOKEN = PaperLine("", 0, r"For each token $t$, with its rows $q$, $k$ and $v$:", _BLOCK, "")
_RECURRENT = (
    PaperLine(
        "eq. 16", 0, r"On chip, start with the state $S = 0$, $z = 0$",
        _OP, f"{_LINEAR_PAPER}, equations 16 and 17",
    ),
    _TOKEN,
    PaperLine(
        "eq. 7", 1, r"$\phi(x) = \mathrm{elu}(x) + 1$ of $q$ and $k$",
        _OP, f"{_LINEAR_PAPER}, equation 7",
    ),
    PaperLine(
        "lemma 1", 1, r"or Performer's $\phi(x) = e^{\omega x' - |x'|^2 / 2} / \sqrt{r}$,"
        r" $x' = x\, d^{-1/4}$, for each of $r$ random directions $\omega$",
        _OP, "Choromanski et al. 2021, lemma 1",
    ),
    PaperLine(
        "eq. 18", 1, r"$S \leftarrow S + \phi(k)^{\top} v$ and $z \leftarrow z + \phi(k)$",
        _OP, f"{_LINEAR_PAPER}, equations 18 and 19",
    ),
    PaperLine(
        "eq. 20", 1, r"$o = \phi(q)\, S / (\phi(q)\, z)$, stored in HBM",
        _OP, f"{_LINEAR_PAPER}, equation 20",
    ),
    PaperLine("", 0, r"End for", _BLOCK, ""),
    PaperLine("", 0, r"Return $O$", _END, ""),
)  # fmt: skip


def _gated(rows: str, words: str, *update: PaperLine) -> tuple[PaperLine, ...]:
    """Return the lines of an update without a sum of the weights."""
    return (
        PaperLine(
            "start", 0, r"On chip, start with the state $S = 0$",
            _OP, "Yang et al. 2024, initial state",
        ),
        _TOKEN,
        PaperLine("rows", 1, words, _OP, f"Yang et al. 2024, {rows}"),
        *update,
        PaperLine("read", 1, r"$o = q\, S$, stored in HBM", _OP, "Yang et al. 2024, readout"),
        PaperLine("", 0, r"End for", _BLOCK, ""),
        PaperLine("", 0, r"Return $O$", _END, ""),
    )  # fmt: skip


_GLA = _gated(
    "rows as they are", r"$q$ and $k$ are as they are; $\alpha$ is in $(0, 1]$ for each feature",
    PaperLine(
        "forget", 1, r"$S \leftarrow \mathrm{diag}(\alpha)\, S$", _OP, "Yang et al. 2024, decay"
    ),
    PaperLine(
        "write", 1, r"$S \leftarrow S + k^{\top} v$", _OP, "Yang et al. 2024, outer product"
    ),
)  # fmt: skip
_DELTANET = _gated(
    "rows of length 1",
    r"$q \leftarrow q / |q|$ and $k \leftarrow k / |k|$; $\beta$ is in $(0, 1]$",
    PaperLine(
        "recall", 1, r"What the state has for the key: $v_{\mathrm{old}} = k\, S$",
        _OP, "Yang et al. 2024, old value",
    ),
    PaperLine("delta", 1, r"$u = \beta\, (v - v_{\mathrm{old}})$", _OP, "Yang et al. 2024, delta"),
    PaperLine(
        "write", 1, r"$S \leftarrow S + k^{\top} u$", _OP, "Yang et al. 2024, outer product"
    ),
)  # fmt: skip

_SCALE = r"The scale $1/\sqrt{d}$, which these lines leave out, is part of $S$ here."
_SKIP = r"Tiles that the mask hides whole are passed over."

PAPERS: dict[str, Paper] = {
    "naive": Paper(
        "Standard attention: Dao et al. 2022, Algorithm 0",
        _NAIVE,
        rf"{_SCALE} A mask is put on $S$ before it is stored.",
    ),
    "flash1": Paper(
        "FlashAttention-1: Dao et al. 2022, Algorithm 1",
        (*_FLASH1[:9], _FLASH1_MASK, *_FLASH1[9:]),
        rf"{_SCALE} {_SKIP}",
    ),
    "flash2": Paper(
        "FlashAttention-2: Dao 2023, Algorithm 1",
        (*_FLASH2[:8], _FLASH2_MASK, *_FLASH2[8:]),
        rf"{_SCALE} {_SKIP}",
    ),
    "split-kv": Paper(
        "Split-KV: Dao et al. 2023, Flash-Decoding; in a split Dao 2023, Algorithm 1",
        _SPLIT_KV,
        rf"{_SCALE} {_SKIP} The query heads of a KV head are the rows of one block.",
    ),
    "paged": Paper(
        "Paged: Kwon et al. 2023; splits: Dao et al. 2023, Flash-Decoding",
        _PAGED,
        rf"{_SCALE} {_SKIP} $K$ and $V$ of a page lie at its place, for all heads.",
    ),
    "mla": Paper(
        "MLA, absorbed: Liu et al. 2024, DeepSeek-V2; splits: Dao et al. 2023, Flash-Decoding",
        _MLA,
        rf"{_SCALE} {_SKIP} All heads are the rows of one block: each reads the same latent.",
    ),
    "naive-backward": Paper(
        "Standard attention, backward: Dao et al. 2022, Algorithm 3",
        _NAIVE_BACKWARD,
        r"The scale $1/\sqrt{d}$, which these lines leave out, multiplies $dK$ and $dQ$ once, at"
        r" their end. The query heads of a KV head take their turns in a column block. $P$ is what"
        r" the forward pass has left in HBM.",
    ),
    "flash2-backward": Paper(
        "FlashAttention-2, backward: Dao 2023, Algorithm 2; also Dao et al. 2022, Algorithm 4",
        (*_BACKWARD[:10], _FLASH2_MASK, *_BACKWARD[10:]),
        r"The scale $1/\sqrt{d}$, which these lines leave out, is part of $S$, and multiplies $dK$"
        r" and $dQ$ once, at their end. The query heads of a KV head take their turns in a column"
        rf" block. {_SKIP} Algorithm 4 of 2022 stores $m$ and $\ell$ in the place of $L$.",
    ),
    "linear": Paper(
        "Linear attention: Katharopoulos et al. 2020; feature maps: Choromanski et al. 2021",
        _LINEAR,
        r"$S$ and $z$ are one matrix here, the state: $V$ with a column of ones beside it. This is"
        r" another function than attention with a softmax. With chunks of one key it is a recurrent"
        r" network.",
    ),
    "linear-recurrent": Paper(
        "Linear attention as a recurrent network: Katharopoulos et al. 2020, section 3.4",
        _RECURRENT,
        r"$S$ and $z$ are one matrix here, the state: $v$ with a one beside it. The chunks of"
        r" linear attention compute the same.",
    ),
    "gla": Paper(
        "Gated linear attention: Yang et al. 2024, arXiv 2312.06635, section 4.1",
        _GLA,
        r"$\alpha$ is an input here, as $K$ and $V$ are. No scale, and no sum of the weights.",
    ),
    "deltanet": Paper(
        "DeltaNet: Yang et al. 2024, arXiv 2406.06484, section 2.2",
        _DELTANET,
        r"$\beta$ is an input here, as $K$ and $V$ are. No scale, and no sum of the weights. With"
        r" $\beta = 1$ the state answers a key with the value that was written with it last.",
    ),
}
"""The algorithm of each tile program."""

_CITATION = re.compile(r"(?P<source>.*), lines? (?P<first>\d+)(?:-(?P<last>\d+))?(?:,.*)?")


@lru_cache(maxsize=128)
def cited_lines(algorithm: str, cites: str) -> tuple[int, ...]:
    """Return the places in an algorithm's lines, from 0, that a citation names."""
    lines = PAPERS[algorithm].lines
    whole = [n for n, line in enumerate(lines) if line.source == cites]
    if whole:
        return tuple(whole)
    found = _CITATION.fullmatch(cites)
    if found is None:
        return ()
    first = int(found["first"])
    numbers = range(first, int(found["last"] or first) + 1)
    return tuple(
        n
        for n, line in enumerate(lines)
        if line.source == found["source"] and line.label.isdigit() and int(line.label) in numbers
    )
