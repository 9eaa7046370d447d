"""What a model itself computes, seen by hooks as it runs: nothing of docs/capture helps."""

import inspect
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Model = Any  # of transformers, which is imported late
NEAR = 1e-4
"""What share of the largest number rounding in float32 makes; a wrong mask makes 0.05 and more."""
PRODUCTS = ("matmul", "__matmul__", "bmm", "einsum", "scaled_dot_product_attention")


@dataclass
class Given:
    """What a module was given in one run, or what products within it made: an array for each."""

    name: str
    projects: bool
    """Whether it has a matrix: what O's projection is, and a norm is not."""
    product: bool = False
    calls: list[np.ndarray] = field(default_factory=list)


Truth = dict[str, Given]
"""By the module's name; by `=` and its name what products within it made."""


@dataclass
class Match:
    """What is nearest to an O."""

    error: float
    given: Given
    call: int = 0
    beside: bool = False
    """Whether the module is given columns of something else as well."""

    @property
    def kind(self) -> str:
        return "".join("*" if letter.isdigit() else letter for letter in self.given.name)


def arrays(value: Any) -> list[np.ndarray]:
    """Return what of a tensor may be O, an array for each of a batch."""
    import torch

    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return []
    made = value.detach().float().cpu().numpy().copy()
    if made.ndim == 3 and made.shape[1] == 1 < made.shape[0]:
        made = made[:, 0]  # of models whose batch comes second
    return [made] if made.ndim == 2 else list(made) if made.ndim > 2 else []


def truth_of(model: Model, inputs: dict[str, Any]) -> Truth:
    """Run a model as it is, once; return what all of its modules were given."""
    import torch
    from torch.overrides import TorchFunctionMode

    found: Truth = {}
    names = {module: name for name, module in model.named_modules(remove_duplicate=False)}
    inside: list[str] = []

    class Products(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            made = func(*args, **(kwargs or {}))
            if func.__name__ in PRODUCTS and inside:
                name = f"={inside[-1]}"
                found.setdefault(name, Given(inside[-1], False, True)).calls.extend(arrays(made))
            return made

    def enter(module: Any, args: Any, kwargs: Any) -> None:
        name, weight = names[module], getattr(module, "weight", None)
        inside.append(name)
        first = args[0] if args else next(iter(kwargs.values()), None)
        each = found.setdefault(name, Given(name, weight is not None and weight.ndim > 1))
        each.calls += arrays(first)

    def leave(*_: Any) -> None:
        inside.pop()

    hooks = [module.register_forward_pre_hook(enter, with_kwargs=True) for module in names]
    hooks += [module.register_forward_hook(leave, always_call=True) for module in names]
    cache = "use_cache" in inspect.signature(model.forward).parameters
    try:
        torch.manual_seed(0)
        with torch.no_grad(), Products():
            model(**inputs, **({"use_cache": False} if cache else {}))
    finally:
        for hook in hooks:
            hook.remove()
    return found


def difference(own: np.ndarray, given: np.ndarray) -> float:
    """Return how far two arrays are apart, as a share of the largest number."""
    return float(np.abs(own - given).max() / max(1e-30, np.abs(given).max()))


def apart(output: np.ndarray, given: np.ndarray) -> float:
    """Return how far O, (heads, N, dv), is from what a module was given; inf: of another shape."""
    if output.size != given.size:
        return np.inf
    heads, rows, columns = output.shape
    by_rows = output.transpose(1, 0, 2)
    flat = by_rows.reshape(rows, -1)
    if given.ndim == 3 and given.shape[2] == heads * columns:  # an image's rows and columns
        given = given.reshape(rows, -1)
    for own in (flat, output, by_rows, flat.T):
        if given.shape == own.shape:
            return difference(own, given)
    return np.inf


def beside(output: np.ndarray, given: np.ndarray) -> float:
    """Return the same for a module that is given O and columns of something else."""
    flat = output.transpose(1, 0, 2).reshape(output.shape[1], -1)
    columns = flat.shape[1]
    if given.ndim != 2 or len(given) != len(flat) or given.shape[1] <= columns:
        return np.inf
    return min(difference(flat, part) for part in (given[:, :columns], given[:, -columns:]))


def nearest(output: np.ndarray, found: Truth, place: str) -> Match:
    """Return what is nearest to O: if several are equal to it, what has a matrix."""
    calls = [(each, n, call) for each in found.values() for n, call in enumerate(each.calls)]
    matches = [Match(apart(output, call), each, n) for each, n, call in calls]
    good = [one for one in matches if one.error <= NEAR]
    if not good:
        matches += [Match(beside(output, call), each, n, True) for each, n, call in calls
                    if not each.product]  # fmt: skip
        return min(matches, key=lambda one: one.error)
    return min(good, key=lambda one: (not one.given.projects, one.given.product,
                                      not is_of(place, one), one.error))  # fmt: skip


def numbers(name: str) -> list[int]:
    """Return the numbers in the name of a module or place: [3, 0] of block.3.layer.0."""
    return [int(part) for part in name.split(".") if part.isdigit()]


def is_of(place: str, match: Match) -> bool:
    """Return whether a place has the number of a module's layer, or of the module's call."""
    said, calls = numbers(place), len(match.given.calls)
    if not said:
        return False
    return said[0] in numbers(match.given.name)[:1] or (calls > 1 and match.call in said)


def unchanged(before: Truth, after: Truth, match: Match, rows: int | None = None) -> bool:
    """Return whether the first rows that a module was given are the same in another run."""
    name = ("=" if match.given.product else "") + match.given.name
    if name not in after or len(after[name].calls) <= match.call:
        return False
    one, two = before[name].calls[match.call], after[name].calls[match.call]
    if one.shape != two.shape:
        return False
    return bool(np.abs(one[:rows] - two[:rows]).max() <= 1e-5 * np.abs(one).max())
