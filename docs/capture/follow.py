"""What a layer does to attention's output before the output projection."""

import torch

SHAPED = {
    "view", "reshape", "transpose", "permute", "contiguous", "flatten", "unflatten", "to", "float",
    "half", "bfloat16", "double", "type_as", "clone", "dropout", "squeeze", "unsqueeze", "__get__",
    "swapaxes", "swapdims", "movedim", "expand", "__getitem__", "view_as", "reshape_as",
}  # fmt: skip
"""Operations that change no number."""
JOINED = {"cat", "concat", "concatenate", "hstack", "vstack"}
"""Operations that change no number of one tensor alone."""
PRODUCTS = {"linear", "addmm", "conv1d", "matmul", "einsum", "mm", "bmm"}


def tensors_in(args, kwargs=None):
    """Return the tensors among arguments, also those in lists."""
    out = []
    for each in (*args, *(kwargs or {}).values()):
        if isinstance(each, torch.Tensor):
            out.append(each)
        elif isinstance(each, list | tuple):
            out += [one for one in each if isinstance(one, torch.Tensor)]
    return out


class Follower:
    """Follows the outputs of attention through operations to the output projection."""

    def __init__(self):
        self._flow = {}

    def clear(self):
        """Follow nothing any more."""
        self._flow.clear()

    def start(self, out, scores):
        """Follow the output of an attention, a tensor of any shape."""
        self._flow[id(out)] = out, scores

    def lose(self, name):
        """Follow nothing any more, after an operation that cannot be followed."""
        for _, scores in self._flow.values():
            scores.does(f"changes O by {name.strip('_')}")
        self.clear()

    def see(self, name, args, kwargs, out, inner):
        """See an operation; `inner` has the names of the classes of the modules that it is in."""
        if not self._flow:
            return
        given = tensors_in(args, kwargs)
        own = [each for each in given if self._of(each) is not None]
        outs = [each for each in tensors_in([out]) if self._of(each) is None]
        if not own or (not outs and not name.endswith("_")):
            return
        met = {id(self._of(each)): self._of(each) for each in own}
        scores = self._of(own[0])
        if name not in SHAPED and (name not in JOINED or len(given) > 1):
            others = [each for each in given if each is not own[0]]
            if name in PRODUCTS and (name == "conv1d" or any(each.ndim < 3 for each in others)):
                self.end(own[0], turned=name == "conv1d")
                return
            if len(met) > 1:
                for each in met.values():
                    each.does("joins O with that of another attention")
            elif any("norm" in each.lower() for each in (*inner[-2:], name)):
                scores.does("norms O")
            elif name in ("mul", "mul_") and len(own) == 1:
                scores.gated(own[0], others[0] if others else args[1])
            else:
                scores.does(f"changes O by {name.strip('_')}")
        for each in outs or own[:1]:
            self._flow[id(each)] = each, scores

    def _of(self, tensor):
        found = self._flow.get(id(tensor))
        return found[1] if found is not None and found[0] is tensor else None

    def end(self, given, turned=False):
        """Hold what a projection is given, if it came of O, against O; `turned`: (1, D, N)."""
        scores = self._of(given)
        if scores is not None:
            scores.projected(given.transpose(-1, -2) if turned else given)
            self._flow = {key: each for key, each in self._flow.items() if each[1] is not scores}
