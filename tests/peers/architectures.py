"""Every architecture of transformers, small: what capture writes is what the model does.

    python -m tests.peers.architectures [NAME ...] [--jobs N]

One line for each: EQUAL; AFTER, right about attention, and the file says what the layer does to O
before W_O; REFUSED in a line; NO ATTENTION; NOT BUILT; WRONG; TRACEBACK. The exit status is 1 if
any is one of the last two. O of a run on each file is held against what the modules of a second
model are given (`truth`), and so are the names of places, masks and heads; files that the command
makes of a text and the model in a folder are what the call returns (`by_command`).
"""

import argparse
import contextlib
import io
import json
import multiprocessing
import os
import re
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.peers.by_command import faults
from tests.peers.small_architectures import COUNT, FIRST, TARGET, VOCAB, build, inputs_of, names
from tests.peers.truth import NEAR, Match, Truth, is_of, nearest, numbers, truth_of, unchanged

Model = Any  # of transformers, which is imported late
FOLDER = str(Path(__file__).parents[2] / "docs" / "capture")
BAD = ("WRONG", "TRACEBACK")
NO_ATTENTION = ("falcon_mamba", "fnet", "mamba", "mamba2", "rwkv", "xlstm")
"""These mix tokens without a softmax of scores."""
LATE = COUNT - 10
"""From which token on another text differs."""
SECONDS, MEMORY = 180, 8 * 2**30
"""How long one architecture may take, and the bytes that it may map."""


@dataclass
class Tried:
    """A model as it is: what its modules are given, on its own inputs and on others."""

    model: Model
    found: Truth
    late: Truth | None
    """With another text from token LATE on."""
    decoder: Truth | None
    """With another text for the decoder."""


def recording() -> Any:
    """Return the module of docs/capture that records."""
    if FOLDER not in sys.path:
        sys.path.insert(0, FOLDER)
    import recording  # type: ignore[import-not-found]

    return recording


def opened(tensors: dict[str, Any], texts: dict[str, str], path: Path) -> Any:
    """Return a run of FlashAttention-2 on a file, in tiles that do not divide."""
    from safetensors.torch import save_file

    from simulator.problem.scenario import parse_scenario
    from simulator.run.trace import simulate

    save_file(tensors, path, texts)
    source = {"source": "file", "path": str(path)}
    return simulate(parse_scenario({"input": source, "tiling": {"rows": 16, "cols": 12}}))


def tried(model: Model, inputs: dict[str, Any]) -> Tried:
    """Run a model on its inputs, and on others that tell what sees what."""

    def on_another(name: str, first: int) -> Truth:
        ids = inputs[name].clone()
        ids[:, first:] = FIRST + (ids[:, first:] - FIRST + 7) % (VOCAB - FIRST)
        return truth_of(model, {**inputs, name: ids})

    two = "decoder_input_ids" in inputs
    one_text = not two and "input_ids" in inputs and inputs["input_ids"].shape[1] == COUNT
    late = on_another("input_ids", LATE) if one_text else None
    decoder = on_another("decoder_input_ids", 0) if two else None
    return Tried(model, truth_of(model, inputs), late, decoder)


def place_outcome(place: str, tensors: dict[str, Any], texts: dict[str, str], output: np.ndarray,
                  own: Tried) -> tuple[str, str, Match]:  # fmt: skip
    """Return what became of one place: its outcome, a remark, and whose O it is."""
    gate, after = tensors.get("gate"), texts.get("after", "")
    match = nearest(output, own.found, place)  # gated, if the file has a gate
    name = match.given.name
    whole = match.given.projects and not match.beside
    if not match.error <= NEAR:
        wrong = f"O is nobody's: {match.error:.1e} from {name}"
    elif not whole and not after:
        wrong = f"O is not what W_O is given, and the file says no word (it is {name}'s)"
    elif whole and after and gate is None:
        wrong = f"the file says {after!r}, but {name} is given O itself"
    elif not is_of(place, match):
        wrong = f"O is that of {name}, call {match.call}"
    else:
        wrong = label(place, tensors, texts, match, own)
    if wrong:
        return "WRONG", wrong, match
    return ("AFTER", f"{match.error:.0e}, {after}", match) if after else (
        "EQUAL", f"{match.error:.0e}", match)  # fmt: skip


def label(place: str, tensors: dict[str, Any], texts: dict[str, str], match: Match,
          own: Tried) -> str:  # fmt: skip
    """Return what of a place's labels is not true, or nothing."""
    parts, name = place.split("."), match.given.name
    q, k, v = (tensors[each] for each in "qkv")
    queries, keys = q.shape[1], k.shape[1]
    said = re.search(r"(self_?att)|(?:enc_?dec|cross|encoder)_?att", name, re.IGNORECASE)
    if said and bool(said[1]) == ("cross" in parts):
        return f"is that of {name}"
    if own.decoder is not None:
        same = unchanged(own.found, own.decoder, match) and queries != TARGET
        both = said and said[1]  # decoder's and encoder's keys at once
        side = "encoder" if same else "cross" if queries != keys and not both else "decoder"
        if parts[0] != side and not (side == "encoder" and parts[0] not in ("decoder", "cross")):
            return f"is the {side}'s"
    if own.late is not None and queries == keys == COUNT:
        blind = unchanged(own.found, own.late, match, LATE)
        if blind and visible(texts, tensors)[:LATE, LATE:].any():
            return "earlier rows do not see later tokens in the model, and do in the file"
    if len(q) in (COUNT, TARGET) and len(q) not in known_heads(own.model.config):
        return f"its {len(q)} heads are the tokens of a text"
    pairs = [(i, i + 1) for i in range(0, len(k) - 1, 2)]
    if pairs and all((each[i] == each[j]).all() for i, j in pairs for each in (k, v)):
        return f"its {len(k)} KV heads are repeated ones"
    return ""


def known_heads(config: Any) -> set[int]:
    """Return every number of heads that a config has."""
    found = set()
    for key, value in vars(config).items():
        if hasattr(value, "to_dict"):
            found |= known_heads(value)
        elif "head" in key and isinstance(value, int):
            found.add(value)
    return found


def visible(texts: dict[str, str], tensors: dict[str, Any]) -> np.ndarray:
    """Return which pairs a file says that any head sees, (COUNT, COUNT), its window apart."""
    sees = np.ones((COUNT, COUNT), dtype=bool)
    if texts["causal"] == "true":
        sees = np.tril(sees)
    if "mask" in tensors:
        count = json.loads(texts["mask_shape"])[-1]
        mask = np.unpackbits(tensors["mask"].numpy(), axis=-1, bitorder="big")[..., :count] > 0
        sees &= mask.any(axis=0) if mask.ndim == 3 else mask
    return sees


def outcome(name: str) -> tuple[str, str]:
    """Return what became of an architecture: the word, and in a line what there is to say."""
    import torch

    try:
        model = build(name)
        inputs = inputs_of(name, model)
        own = tried(model, inputs)
    except Exception as error:
        return "NOT BUILT", one_line(error)
    capture, commanded = recording(), ""
    try:
        torch.manual_seed(0)
        captured = capture.capture(build(name), None, **inputs)
    except capture.CaptureError as error:
        if "\n" in str(error):
            return "WRONG", f"a refusal of many lines: {one_line(error)}"
        captured = str(error)
    except Exception as error:
        return "TRACEBACK", one_line(error, where=True)
    try:
        if {*inputs} <= {"input_ids", "decoder_input_ids"}:
            commanded = faults(build(name), inputs, captured)
    except Exception as error:
        return "TRACEBACK", f"by the command: {one_line(error, where=True)}"
    if isinstance(commanded, list) and commanded:
        return "WRONG", f"by the command: {'; '.join(commanded[:2])}"
    if isinstance(captured, str):
        return "NO ATTENTION" if name in NO_ATTENTION else "REFUSED", captured
    results: dict[str, tuple[str, str]] = {}
    matches = []
    with tempfile.TemporaryDirectory() as folder:
        for place, (tensors, texts) in captured.items():
            try:
                run = opened(tensors, texts, Path(folder) / "file.safetensors")
            except Exception as error:
                results[place] = "WRONG", f"does not open: {one_line(error)}"
                continue
            output = np.asarray(run.output, dtype=np.float32)
            *results[place], match = place_outcome(place, tensors, texts, output, own)
            matches.append(match)
    if silent := missed(own.found, matches, captured.left_out):
        results["all"] = "WRONG", f"no word of {', '.join(silent)}"
    word, text = summary(results, captured)
    return word, f"{text} | {commanded}" if commanded else text


def missed(found: Truth, matches: list[Match], left_out: dict[str, str]) -> list[str]:
    """Return modules like those that were captured of which the capture says nothing."""
    kinds = {match.kind for match in matches if not match.given.product}
    seen = {(match.given.name, match.call) for match in matches}
    left = {number for place in left_out for number in numbers(place)[:1]}
    return [f"{each.name} call {n}" for each in found.values() if not each.product
            for n in range(len(each.calls)) if Match(0, each).kind in kinds
            and (each.name, n) not in seen and not {n, *numbers(each.name)[:1]} & left]  # fmt: skip


def summary(results: dict[str, tuple[str, str]], captured: Any) -> tuple[str, str]:
    """Return the outcome of an architecture from those of its places."""
    count = Counter(word for word, _ in results.values())
    word = next(each for each in ("WRONG", "AFTER", "EQUAL") if count[each])
    said = [f"{place}: {remark}" for place, (each, remark) in results.items() if each == word]
    heads = sorted({f"{len(tensors['q'])}/{len(tensors['k'])}" for tensors, _ in captured.values()})
    keys = {key for tensors, texts in captured.values() for key in [*tensors, *texts]
            if key not in ("q", "k", "v", "scale", "causal", "after", "mask_shape")
            and texts.get(key) not in ("0", "0.0")}  # fmt: skip
    line = [", ".join(f"{n} {each}" for each, n in count.items()), f"heads {' '.join(heads)}",
            " ".join(sorted(keys)), "; ".join(said[:2])]  # fmt: skip
    if captured.left_out:
        place, why = next(iter(captured.left_out.items()))
        line.append(f"left out {len(captured.left_out)}, {place}: {why}")
    return word, " | ".join(each for each in line if each)


def one_line(error: BaseException, where: bool = False) -> str:
    """Return an error as one line, maybe with the places in the source that it came through."""
    text = f"{type(error).__name__}: {' '.join(str(error).split())[:250]}"
    if where:
        frames = traceback.extract_tb(error.__traceback__)[:-4:-1]
        text += f" [{' < '.join(f'{Path(f.filename).name}:{f.lineno}' for f in frames)}]"
    return text


def alone(name: str, pipe: Any) -> None:
    """Send the outcome of an architecture, from a process of its own."""
    with contextlib.suppress(ImportError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    try:
        with silence():
            result = outcome(name)
    except Exception as error:
        result = "WRONG", f"the comparison: {one_line(error, where=True)}"
    pipe.send(result)


@contextlib.contextmanager
def silence() -> Any:
    """Let models say what they say to nobody."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def run(chosen: list[str], jobs: int) -> int:
    """Try architectures, each in its own process; print a line for each, then a count."""
    import torch
    import transformers

    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    with silence():
        for name in ("llama", "t5"):
            outcome(name)  # so that what is imported is there for every process
    context = multiprocessing.get_context("fork" if hasattr(os, "fork") else "spawn")
    waiting, count = list(chosen), Counter[str]()
    running: dict[str, tuple[Any, Any, float]] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            name = waiting.pop(0)
            mine, theirs = context.Pipe()
            process = context.Process(target=alone, args=(name, theirs))
            process.start()
            theirs.close()
            running[name] = process, mine, time.monotonic()
        time.sleep(0.02)
        for name, (process, pipe, start) in list(running.items()):
            if pipe.poll():
                try:
                    word, text = pipe.recv()
                except EOFError:
                    process.join()
                    word, text = "TRACEBACK", f"the process ended with {process.exitcode}"
            elif time.monotonic() - start > SECONDS:
                process.kill()
                word, text = "TRACEBACK", f"took more than {SECONDS} s"
            else:
                continue
            process.join()
            del running[name]
            count[word] += 1
            print(f"{name:28} {word:12} {text}", flush=True)
    print(", ".join(f"{n} {word}" for word, n in sorted(count.items())), flush=True)
    return int(any(word in BAD for word in count))


def main(arguments: list[str]) -> int:
    """Do what a command line says; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.peers.architectures")
    parser.add_argument("names", nargs="*", help="as llama or gemma3@picture; all if there is none")
    parser.add_argument("--jobs", default="auto", help="how many processes at a time")
    chosen = parser.parse_args(arguments)
    jobs = os.cpu_count() or 1 if chosen.jobs == "auto" else max(1, int(chosen.jobs))
    return run(chosen.names or names(), jobs)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
