"""Record what attention layers of a PyTorch model compute while the model runs as it is."""

import re
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby

import torch
from follow import Follower
from probe import parts_of, probe
from scores import CaptureError, Scores, of_sdpa, of_softmax, refuse
from tensors import kept, with_rest
from torch.overrides import TorchFunctionMode

CROSS = ("EncDecAttention", "encoder_attn", "crossattention", "cross_attn")
"""How models call an attention whose keys are of another text than its queries."""
OF_ANOTHER = ("key_value_states", "encoder_hidden_states", "cross_attention_states")
"""What a module is given beside its own sequence if it is such an attention."""


class Captured(dict):
    """``(tensors, texts)`` by place, as a file has them.

    Attributes
    ----------
    left_out : dict
        Why a place has no tensors, in one line, by place.
    modules : dict
        The name in the model of what has computed it, by place.
    """

    def __init__(self):
        super().__init__()
        self.left_out, self.modules = {}, {}


UNSEEN = "not captured: torch.nn.MultiheadAttention computes it, whose scores cannot be seen"
PIECES = "not captured: attention is computed in pieces"


@dataclass(eq=False)
class Event:
    """One attention of one layer, as the model has computed it.

    Attributes
    ----------
    name : str
        Of the module that has computed it, in the model.
    cross : bool
        Whether its keys are of another sequence than its queries.
    visit : int
        How many modules with projections of their own have begun to run.
    scores : Scores or None
        What is done to its output; None if the layer is not asked for.
    file : tuple of dict
        Tensors and texts, as a file has them.
    why : str
        Why there is nothing to record, in one line.
    """

    name: str
    cross: bool
    visit: int = 0
    scores: Scores | None = None
    file: tuple = ()
    why: str = ""

    def read(self, scores):
        """Keep what `scores` returns, or why there is nothing to keep."""
        try:
            read = scores()
            self.file = kept(read)
        except CaptureError as error:
            self.why = str(error)
        except Exception as error:  # of operations that nobody has foreseen
            self.why = f"{PIECES} ({type(error).__name__})"
            if isinstance(error, MemoryError) or "allocate" in str(error):
                self.why = "not captured: there is no memory for the scores of so many tokens"
        else:
            small = {"sees": read.sees[:, :0], "bias": None, "made": None}
            self.scores = replace(read, **small)


class Made:
    """A tensor, and the operation and arguments that it was made of."""

    __slots__ = ("args", "before", "kwargs", "name", "out")

    def __init__(self, name, args, kwargs, out, before):
        self.name, self.args, self.kwargs, self.out, self.before = name, args, kwargs, out, before


class Recorder(TorchFunctionMode):
    """Sees every operation of a model's run, and keeps the attention layers.

    Parameters
    ----------
    model : Module
        Is left as it was.
    wanted : callable
        Whether the attention of a module is kept, by the module's name in the model.
    """

    def __init__(self, model, wanted):
        super().__init__()
        self._model, self._wanted = model, wanted
        self._made, self._follower = {}, Follower()
        self._inside = []
        self.events, self.entered = [], []

    @contextmanager
    def watching(self):
        """Know in which module of the model an operation is."""
        hooks = []
        for name, module in self._model.named_modules():
            hooks.append(module.register_forward_pre_hook(self._enter(name), with_kwargs=True))
            hooks.append(module.register_forward_hook(self._leave, always_call=True))
        try:
            with self:
                yield self
        finally:
            for hook in hooks:
                hook.remove()

    def _enter(self, name):
        parts = parts_of(self._model.get_submodule(name))
        a_layer = re.fullmatch(r"(?:[^.]*[^.\d][^.]*\.)*\d+", name)

        def enter(module, args, kwargs):
            if a_layer:  # what was made before is of other layers
                self._made.clear()
                self._follower.clear()
            self._inside.append((name, module, args, kwargs))
            if "linear" in type(module).__name__.lower() and args:  # of half the bits, or a LoRA's
                self._follower.end(args[0])
            if parts and self._wanted(name):
                self.entered.append((len(self.events), name, module, args, kwargs))

        return enter

    def _leave(self, *_):
        self._inside.pop()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        name = func.__name__
        inner = [type(module).__name__ for _, module, _, _ in self._inside]
        try:
            self._follower.see(name, args, kwargs, out, inner)
        except Exception:  # of operations that nobody has foreseen
            self._follower.lose(name)
        if name == "scaled_dot_product_attention":
            self._attention(out, lambda: of_sdpa(args, kwargs, out))
        elif name == "multi_head_attention_forward":
            self._attention(out, lambda: refuse(UNSEEN))
        elif name == "__setitem__":
            self._note(name, args, kwargs, args[0])
        elif isinstance(out, torch.Tensor) and name not in ("dim", "size"):
            self._note(name, args, kwargs, out)
            found = of_softmax(name, args, kwargs, out, self.how)
            if found:
                self._attention(out, found)
        return out

    def how(self, tensor):
        """Return how a tensor was made, None if that was before this layer."""
        made = self._made.get(id(tensor))
        return made if made is not None and made.out is tensor else None

    def _note(self, name, args, kwargs, out):
        in_place = name == "__setitem__" or (name.endswith("_") and not name.endswith("__"))
        if in_place or not any(out is each for each in args):
            before = self.how(args[0]) if in_place and args else None
            self._made[id(out)] = Made(name, args, kwargs, out, before)

    def _attention(self, out, found):
        name, module, args, kwargs = self._inside[-1] if self._inside else ("", None, (), {})
        cross = any(word in name for word in CROSS) or any(
            kwargs.get(other) is not None for other in OF_ANOTHER
        )
        event = Event(name, cross, len(self.entered))
        self.events.append(event)
        if not self._wanted(name):
            return
        event.read(lambda: found().of(module, args, kwargs))
        others = [kwargs.get(other) for other in OF_ANOTHER if kwargs.get(other) is not None]
        if event.scores and others and others[0].shape[-2] != event.scores.k.shape[1]:
            event.cross = False  # its keys are of both sequences
        if not event.why:
            self._follower.start(out, event.scores)

    def probe_the_rest(self):
        """Ask the modules for their weights whose attention was not seen as one product."""
        for visit in range(len(self.entered), 0, -1):
            place, name, module, args, kwargs = self.entered[visit - 1]
            own = [
                event for event in self.events
                if event.visit == visit and f"{event.name}.".startswith(f"{name}.")
            ]  # fmt: skip
            if own and not any(event.why for event in own) and len(own) < 3:
                continue
            event = Event(name, cross=False)
            event.read(lambda given=(module, args, kwargs): probe(*given))
            if event.why and not own:
                continue  # it mixes tokens in another way
            if event.why and len(own) == 1:
                event.why = own[0].why
            rest = [each for each in self.events[place:] if each not in own]
            self.events[place:] = [event, *rest]


@contextmanager
def as_in_use(model):
    """Let a model run as it does when it is used, not trained."""
    trained = [module for module in model.modules() if module.training]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module in trained:
            module.training = True


def run(model, given):
    """Return the numbers that a model makes of what it is given, a list of tensors.

    Raises
    ------
    CaptureError
        The model stops.
    """
    import copy
    import inspect

    given = {
        name: value.to(model.device) if isinstance(value, torch.Tensor) else copy.deepcopy(value)
        for name, value in given.items()
    }
    if given.get("past_key_values") is None:
        given.pop("past_key_values", None)
        if "use_cache" in inspect.signature(model.forward).parameters:
            given.setdefault("use_cache", False)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        try:
            made = model(**given)
        except Exception as error:
            why = (str(error).strip().splitlines() or [""])[0]
            raise CaptureError(
                f"not captured: the model does not run on this: {type(error).__name__}: {why}"
            ) from None
    parts = made if isinstance(made, tuple | list) else list(getattr(made, "values", list)())
    return [t for t in parts if isinstance(t, torch.Tensor) and t.is_floating_point()]


def same(plain, recorded):
    """Stop unless two runs of a model made the same.

    Raises
    ------
    CaptureError
        They did not.
    """
    for one, other in zip(plain, recorded, strict=True):
        if torch.equal(one, other) or not one.numel():
            continue
        one, other = (t.double().nan_to_num() for t in (one, other))
        share = float((one - other).abs().max() / one.abs().max().clamp(min=1e-30))
        if not share <= 1e-5:
            raise CaptureError(
                "not captured: while it was recorded the model made other numbers than before, off "
                f"by {share:.1e} of them"
            )


def check_given(model, given):
    """Stop if what a model is given cannot be recorded.

    Raises
    ------
    CaptureError
        Weights are not loaded; there is more than one sequence, or none.
    """
    if not hasattr(model, "config") or not hasattr(model, "device"):
        raise CaptureError(
            f"not captured: {type(model).__name__} is no model of transformers, with its config"
        )
    if any(each.is_meta for each in model.parameters()):
        raise CaptureError("not captured: the model is on the device meta, without its weights")
    for name, value in given.items():
        if not isinstance(value, torch.Tensor) or not value.ndim:
            continue
        rows = name == "pixel_values" and value.ndim == 2  # of patches of one picture
        if (
            value.shape[0] > 1
            and not rows
            and name.endswith(("ids", "mask", "values", "embeds", "features"))
        ):
            raise CaptureError(
                f"not captured: {name} has the shape {tuple(value.shape)}: give one sequence at a "
                f"time, {name}[{':1' if value.ndim > 1 else 'None'}] for example"
            )
        if name.endswith("input_ids"):
            check_ids(model, name, value)


def check_ids(model, name, ids):
    """Stop if there are no tokens, or some that a model does not know.

    Raises
    ------
    CaptureError
        So it is.
    """
    if not ids.numel():
        raise CaptureError(f"not captured: {name} has no tokens")
    try:
        size = getattr(model.get_input_embeddings(), "num_embeddings", None)
    except NotImplementedError:  # of a model with several
        size = None
    if size and not 0 <= int(ids.min()) <= int(ids.max()) < size:
        raise CaptureError(
            f"not captured: {name} has token {int(ids.max())}, and the model knows 0 to "
            f"{size - 1}: is the tokenizer another model's?"
        )


def capture(model, layers, **given):
    """Run `model` on what is given to it; return tensors and texts of the layers asked for.

    The model runs twice: as it is, and again while its operations are seen. Nothing is replaced.

    Parameters
    ----------
    model : PreTrainedModel
        Is left as it was.
    layers : list of str, or None
        Places, as `named` calls them; None for all.
    **given
        For the model: ``input_ids`` (1, N), maybe ``decoder_input_ids`` or ``past_key_values``.

    Returns
    -------
    Captured
        ``(tensors, texts)`` by place, as a file has them.

    Raises
    ------
    CaptureError
        There is no such layer; or its numbers cannot be had, or are not all that a file must have.
    """
    check_given(model, given)
    layers = None if layers is None else [str(layer) for layer in layers]
    if layers is not None and not layers:
        raise CaptureError("not captured: no layer is asked for")
    numbers = None if layers is None else {split(layer)[1] for layer in layers}
    recorder = Recorder(
        model, lambda name: numbers is None or (of_layer(name) or ("", "", ""))[1] in numbers
    )
    with as_in_use(model):
        plain = run(model, given)
        with recorder.watching():
            recorded = run(model, given)
        same(plain, recorded)
        recorder.probe_the_rest()
        places = named(model, recorder.events)
    ran = sum(of_layer(event.name) is not None for event in recorder.events)
    if len(places) != ran:
        raise CaptureError(f"not captured: it ran {ran} attentions, and {len(places)} have a place")
    found = Captured()
    chosen = choose(layers, places)
    for place in chosen:
        event = places[place]
        if event.scores is not None:
            found[place] = with_rest(event.scores, *event.file)
            found.modules[place] = event.name
        elif layers is not None:
            raise CaptureError(f"layer {place}: {event.why}")
        else:
            found.left_out[place] = event.why
    if layers is None:
        found.left_out |= without_attention(model, places)
        for each in recorder.events:
            if of_layer(each.name) is None:
                found.left_out[each.name or "the model"] = "it is in no numbered layer"
    if not found:
        raise CaptureError(next(iter(found.left_out.values())))
    return found


# --- places --------------------------------------------------------------------------------------


def of_layer(name):
    """Return stack, number and rest of a module's name; None if it is in no numbered layer."""
    match = re.match(r"(.*?)\.?(?<![^.])(\d+)(?:\.(.*))?$", name)
    return None if match is None else (match[1], match[2], match[3] or "")


def split(place):
    """Return stack and number of a place: ("cross", "3") of cross.3, ("", "3") of 3.1."""
    match = re.fullmatch(r"(?:(.*?[^.\d][^.]*)\.)?(\d+)(\.\d+)?", place)
    return (match[1] or "", match[2]) if match else (place, "")


def named(model, events):
    """Return the attention of a run by its place.

    A place is the number of the layer, 3; where several stacks of layers have run with the name of
    the stack, encoder.3; and with a number of its own if there are several of a layer, 3.1 and 3.2.
    """
    stacks = stack_names(model, events)
    several = (
        len({of_layer(each.name)[0] for each in events if each.cross and of_layer(each.name)}) > 1
    )
    grouped = {}
    for event in events:
        of = of_layer(event.name)
        if of is not None:
            stack = stacks[of[0]]
            if event.cross:
                stack = f"{stack}.cross" if several else "cross"
            grouped.setdefault((stack, of[1]), []).append(event)
    places = {}
    for (stack, number), own in grouped.items():
        place = f"{stack}.{number}" if stack else number
        if len(own) == 1:
            places[place] = own[0]
        else:
            places |= {f"{place}.{n}": event for n, event in enumerate(own, 1)}
    check_order(stacks, events)
    return places


def stack_names(model, events):
    """Return what each stack of layers that has run is called, by its place in the model."""
    found = {of_layer(event.name)[0]: "" for event in events if of_layer(event.name)}
    sides, both = {}, getattr(model.config, "is_encoder_decoder", False)
    for side in ("encoder", "decoder") if both else ():
        part = getattr(model, f"get_{side}", lambda: None)()
        if part is not None and part is not model:
            sides |= {name: side for name, module in model.named_modules() if module is part}
    if len(found) == 1 and not both:
        return found
    for stack in found:
        parts = stack.split(".")
        others = [other.split(".") for other in found if other != stack]
        alone = [part for part in parts if not any(part in other for other in others)]
        own = [sides[name] for name in sides if name and f"{stack}.".startswith(f"{name}.")]
        found[stack] = own[0] if len(own) == 1 else alone[0] if alone else stack
    if len(set(found.values())) < len(found):
        return {stack: stack for stack in found}
    return found


def check_order(stacks, events):
    """Stop if an encoder seems to run after its decoder.

    Raises
    ------
    CaptureError
        So it is.
    """
    run = [stacks[of_layer(event.name)[0]] for event in events if of_layer(event.name)]
    order = [side for side, _ in groupby(each for each in run if each in ("encoder", "decoder"))]
    if order not in ([], ["encoder"], ["decoder"], ["encoder", "decoder"]):
        raise CaptureError("not captured: encoder and decoder cannot be told from each other")


def choose(layers, places):
    """Return the places that are asked for, in the order of the run.

    Raises
    ------
    CaptureError
        A layer is not there.
    """
    if layers is None and places:
        return list(places)
    chosen = []
    for layer in layers or ["0"]:
        fitting = [place for place in places if place == layer or fits(layer, place)]
        if not fitting:
            raise CaptureError(
                f"not captured: the model ran no attention layer {layer} (it ran "
                f"{listed(places) or 'none that can be seen'})"
            )
        chosen += fitting
    return [place for place in places if place in chosen]


def fits(layer, place):
    """Whether a place is of a layer that is asked for: 3.1 of 3, vision_model.3 of vision.3."""
    (asked, number), (stack, own) = split(layer), split(place)
    if re.search(r"\d\.\d+$", layer) or number != own or not asked <= stack:
        return False
    return asked == stack or bool(asked and stack.startswith(f"{asked}_"))


def listed(places):
    """Return places in words: encoder.0-3, decoder.0-3."""
    runs = []
    for place in places:
        stack, number = split(place)
        last = runs[-1] if runs else None
        if last and last[0] == stack and int(number) - last[2] in (0, 1):
            last[2] = int(number)
        else:
            runs.append([stack, int(number), int(number)])
    return ", ".join(
        (f"{stack}." if stack else "") + (f"{first}-{last}" if last > first else f"{first}")
        for stack, first, last in runs
    )


def without_attention(model, places):
    """Return the layers of stacks with attention that have none, and why they are left out."""
    modules = dict(model.named_modules())
    out = {}
    had = {of_layer(event.name)[:2] for event in places.values()}
    for stack, first in {of_layer(e.name)[0]: p for p, e in places.items() if not e.cross}.items():
        side = split(first)[0]
        for number, _ in modules[stack].named_children() if stack in modules else ():
            if number.isdigit() and (stack, number) not in had:
                place = f"{side}.{number}" if side else number
                out[place] = "it has no softmax attention that can be seen"
    return out
