"""A model from its folder or the hub, and what reads texts, pictures and sound for it."""

import json
import logging
import re
from functools import cached_property
from pathlib import Path
from typing import Any

from recording import CaptureError

EXPECTED = "expected a model's folder or its name on the hub"
TOKENIZERS = {"tokenizer.json", "tokenizer.model", "tekken.json", "vocab.txt", "vocab.json"}
"""Files that a vocabulary may be in."""
MOST_LETTERS = 240
"""Of what another library says."""
ADAPTER = (
    "an adapter (LoRA) that is not in its model's weights; merge it first: "
    "PeftModel.from_pretrained(model, folder).merge_and_unload().save_pretrained(...)"
)


def stored(name: str, file: str, local: bool) -> str | None:
    """Return where a file of a model is; None if it has none."""
    from transformers.utils import cached_file

    try:
        found: str | None = cached_file(
            name, file, local_files_only=local, _raise_exceptions_for_missing_entries=False
        )
    except Exception:
        return None
    return found


def first_line(error: Exception) -> str:
    """Return what an exception says, in one line."""
    line = (str(error).strip().splitlines() or [type(error).__name__])[0].strip()
    return line if len(line) <= MOST_LETTERS else f"{line[:MOST_LETTERS]}..."


class Reader:
    """What turns texts, pictures and sound into a model's inputs; loaded when it is needed.

    Parameters
    ----------
    name : str
        A folder, or a name on the hub.
    config : PretrainedConfig
        The model's.
    missing : list of str
        Weights of the model that its files do not have.
    local : bool
        Whether the hub cannot be reached.
    """

    def __init__(self, name: str, config: Any, missing: list[str], local: bool) -> None:
        self.name, self.config, self.missing = name, config, missing
        self.kept = {"trust_remote_code": False, "local_files_only": local}

    def loaded(self, auto: str, what: str, **more: Any) -> Any:
        """Return what a class of transformers loads of this model; refuse in one line."""
        import transformers

        try:
            return getattr(transformers, auto).from_pretrained(self.name, **self.kept, **more)
        except Exception as error:
            raise CaptureError(
                f"{self.name}: its {what} cannot be read: {first_line(error)}"
            ) from None

    def settings(self, name: str) -> dict[str, Any]:
        """Return a JSON file of the model; empty if there is none."""
        try:
            found = stored(self.name, name, self.kept["local_files_only"])
            return dict(json.loads(Path(found).read_text("utf-8"))) if found else {}
        except (OSError, ValueError, TypeError):
            return {}

    @cached_property
    def tokenizer(self) -> Any:
        """The model's own; refused where transformers would make one up without a vocabulary."""
        local = self.kept["local_files_only"]
        try:
            tokenizer = self.loaded("AutoTokenizer", "tokenizer")
            files = set(type(tokenizer).vocab_files_names.values())
        except CaptureError:
            if any(stored(self.name, file, local) for file in TOKENIZERS):
                raise
            tokenizer, files = None, {"tokenizer.json"}
        if files and not any(stored(self.name, file, local) for file in files | TOKENIZERS):
            raise CaptureError(f"{self.name}: it has no tokenizer, which the text needs")
        return tokenizer

    @cached_property
    def image_processor(self) -> Any:
        """The one that needs no torchvision; None if there is none such."""
        from transformers import AutoImageProcessor

        try:
            return AutoImageProcessor.from_pretrained(self.name, backend="pil", **self.kept)
        except Exception:
            return None

    @cached_property
    def image_settings(self) -> dict[str, Any]:
        """Size, mean and so on; refused where the model's files do not tell."""
        own = self.image_processor
        found = json.loads(own.to_json_string()) if own is not None else {}
        found = found or self.settings("preprocessor_config.json")
        found = found or self.settings("processor_config.json").get("image_processor", {})
        if not found:
            raise CaptureError(f"{self.name}: it has no preprocessor_config.json for pictures")
        return found

    @cached_property
    def extractor(self) -> Any:
        """What makes a model's input of sound."""
        return self.loaded("AutoFeatureExtractor", "feature extractor")

    @cached_property
    def processor(self) -> Any:
        """What puts text and pictures or sound together; films, which need torchvision, aside."""
        from transformers.models.auto.processing_auto import PROCESSOR_MAPPING

        try:
            kind = PROCESSOR_MAPPING[type(self.config)]
            parts = {
                "tokenizer": lambda: self.tokenizer,
                "image_processor": lambda: self.image_processor,
                "feature_extractor": lambda: self.extractor,
            }
            asked = {name: parts.get(name, lambda: None)() for name in kind.get_attributes()}

            class Own(kind):  # type: ignore[misc, valid-type]
                """The same without films."""

                def check_argument_for_proper_class(self, name: str, argument: Any) -> Any:
                    if argument is None:
                        return None
                    return super().check_argument_for_proper_class(name, argument)

            Own.__name__ = kind.__name__
            settings, more = Own.get_processor_dict(self.name, **self.kept)
            more.pop("trust_remote_code", None)
            return Own.from_args_and_dict(list(asked.values()), settings, **more)
        except CaptureError:
            raise
        except Exception as error:
            why = first_line(error)
            if "Torchvision" in why:
                why = "it needs torchvision: pip install torchvision"
            raise CaptureError(f"{self.name}: its processor cannot be read: {why}") from None


def hub_is_away(name: str) -> bool:
    """Return whether the hub cannot be asked: what was downloaded before is all there is."""
    from huggingface_hub import constants, get_session

    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    if Path(name).is_dir() or constants.HF_HUB_OFFLINE:
        return not Path(name).is_dir()
    try:
        get_session().head(constants.ENDPOINT, timeout=10)
    except Exception:
        return True
    return False


def load(name: str) -> tuple[Any, Reader]:
    """Return a model and what reads for it.

    Parameters
    ----------
    name : str
        A folder, or a name on the hub.

    Raises
    ------
    CaptureError
        There is no such model, or it needs code of its own, or weights have another shape.
    """
    from transformers import AutoConfig, AutoModel
    from transformers.utils import logging as theirs

    theirs.disable_progress_bar()
    theirs.set_verbosity(theirs.CRITICAL)
    path = Path(name)
    if path.is_file():
        gguf = " (of a GGUF file, the folder that it was made of)" if path.suffix == ".gguf" else ""
        raise CaptureError(f"{name}: {EXPECTED}, and this is a file{gguf}")
    if path.is_dir():
        in_folder(path)
    elif not re.fullmatch(r"\w[\w.-]*(/[\w.-]+)?", name):
        raise CaptureError(f"{name}: {EXPECTED}, and there is no such folder")
    away = hub_is_away(name)
    kept = {"trust_remote_code": False, "local_files_only": away}
    what = EXPECTED
    try:
        config = AutoConfig.from_pretrained(name, **kept)
        what = "the model cannot be loaded"
        model, info = AutoModel.from_pretrained(
            name, config=config, output_loading_info=True, ignore_mismatched_sizes=True, **kept
        )
    except Exception as error:
        why = first_line(error)
        if "trust_remote_code" in str(error):
            why = "it needs code of its own (trust_remote_code), and capture runs none"
        elif not path.is_dir() and stored(name, "adapter_config.json", away):
            what, why = "its files are", ADAPTER
        elif away and isinstance(error, OSError):
            why = "the hub cannot be reached, and it was not downloaded before"
        raise CaptureError(f"{name}: {what}: {why}") from None
    if getattr(model, "_hf_peft_config_loaded", False):
        raise CaptureError(f"{name}: {ADAPTER}")
    if getattr(config, "quantization_config", None) and not getattr(model, "hf_quantizer", None):
        raise CaptureError(
            f"{name}: its weights are quantised in a way that transformers cannot read"
        )
    wrong = sorted(
        str(each[0] if isinstance(each, tuple) else each) for each in info["mismatched_keys"]
    )
    if wrong:
        raise CaptureError(f"{name}: weights of another shape than its config says: {some(wrong)}")
    return model, Reader(name, config, sorted(info["missing_keys"]), away)


def in_folder(path: Path) -> None:
    """Stop where a folder cannot be a model's."""
    if (path / "adapter_config.json").is_file():
        raise CaptureError(f"{path}: {ADAPTER}")
    if not (path / "config.json").is_file():
        raise CaptureError(f"{path}: {EXPECTED}, and this has no config.json")


def some(names: list[str]) -> str:
    """Return the first of some names, and how many more there are."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def hold_weights(model: Any, reader: Reader, inputs: dict[str, Any]) -> None:
    """Stop if what the layers compute depends on weights that the model's files do not have.

    PyTorch itself is asked: only those weights ask for gradients, and no last hidden state may.
    A pooler or a head that a checkpoint lacks changes none.
    """
    import torch

    if not reader.missing:
        return
    by_name = dict(model.named_parameters(remove_duplicate=False))
    asked = [by_name[name] for name in reader.missing if name in by_name]
    known = len(asked) == len(reader.missing) and all(one.is_floating_point() for one in asked)
    was = [(one, one.requires_grad) for one in model.parameters()]
    try:
        for one, _ in was:
            one.requires_grad_(False)
        for one in asked:
            one.requires_grad_(known)
        hidden: list[Any] = []
        if known:
            with torch.enable_grad():
                try:
                    collect(model(**inputs), hidden)
                except Exception:  # which stops the recording as well, in one line
                    return
        if not hidden or any(one.requires_grad for one in hidden):
            raise CaptureError(
                f"{reader.name}: weights are missing in its files: {some(reader.missing)}"
            )
    finally:
        for one, asks in was:
            one.requires_grad_(asks)


def collect(output: Any, found: list[Any]) -> None:
    """Gather the last hidden states of a model's output, and of outputs in it."""
    if not hasattr(output, "items"):
        return
    for name, value in output.items():
        if name.endswith("last_hidden_state") and value is not None:
            found.append(value)
        collect(value, found)
