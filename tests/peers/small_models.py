"""Small models with random weights in folders, and what reads for them."""

import json
import wave
from pathlib import Path
from typing import Any

import numpy as np

TEXT = "the cat sat on the mat because it was tired"
EXTRA = ("<image>", "<start>", "<end>", "<film>")
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
         "intermediate_size": 48, "initializer_range": 0.2}  # fmt: skip
SEES = SIZES | {"image_size": 32, "patch_size": 8}
READS = SIZES | {"vocab_size": 61, "max_position_embeddings": 64}
HEARS = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
         "intermediate_size": 48, "conv_dim": [16, 16, 16], "conv_kernel": [10, 8, 4],
         "conv_stride": [8, 8, 5], "num_conv_pos_embeddings": 16,
         "num_conv_pos_embedding_groups": 2, "vocab_size": 32}  # fmt: skip
SQUARE = {"height": 32, "width": 32}
SETTINGS = {"do_resize": True, "do_rescale": True, "do_normalize": True, "rescale_factor": 1 / 255,
            "size": SQUARE, "resample": 2, "image_mean": [0.5, 0.4, 0.3],
            "image_std": [0.2, 0.3, 0.4]}  # fmt: skip


def tokenizer() -> Any:
    """Return a tokenizer of the words of `TEXT`."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = ["[UNK]", "[PAD]", "<s>", "</s>", *EXTRA, *sorted(set(TEXT.split()))]
    own = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, unk_token="[UNK]"))
    own.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=own, unk_token="[UNK]", pad_token="[PAD]", bos_token="<s>",
        eos_token="</s>", additional_special_tokens=list(EXTRA),
    )  # fmt: skip


def make(kind: str) -> tuple[Any, list[Any]]:
    """Return a model, and what reads for it."""
    import torch
    import transformers as t

    torch.manual_seed(0)
    to_square = {"size": {"shortest_edge": 36}, "crop_size": SQUARE}
    text = READS | {"eos_token_id": 3}
    both = {"text_config": text, "vision_config": SEES}
    llava = {
        "vision_config": SEES | {"model_type": "clip_vision_model"},
        "text_config": READS | {"model_type": "llama"},
        "image_token_id": 4, "vision_feature_layer": -1,
    }  # fmt: skip
    whisper = {
        "vocab_size": 61, "d_model": 32, "num_mel_bins": 16, "max_source_positions": 100,
        "max_target_positions": 24, "decoder_start_token_id": 2, "suppress_tokens": None,
        "begin_suppress_tokens": None, "pad_token_id": 1, "bos_token_id": 2, "eos_token_id": 3,
        "init_std": 0.2,
    }  # fmt: skip
    for side in ("encoder", "decoder"):
        whisper |= {f"{side}_layers": 2, f"{side}_attention_heads": 2, f"{side}_ffn_dim": 48}
    rope = {"rope_type": "default", "mrope_section": [2, 3, 3], "rope_theta": 1e4}
    qwen = {
        "text_config": READS | {"num_key_value_heads": 1, "rope_parameters": rope},
        "vision_config": {"depth": 2, "embed_dim": 32, "num_heads": 2, "hidden_size": 32,
                          "patch_size": 8, "mlp_ratio": 2},
        "image_token_id": 4, "video_token_id": 7, "vision_start_token_id": 5,
        "vision_end_token_id": 6,
    }  # fmt: skip
    t5 = {"vocab_size": 61, "d_model": 32, "d_kv": 16, "d_ff": 48, "num_layers": 2, "num_heads": 2,
          "initializer_factor": 1.5, "decoder_start_token_id": 1}  # fmt: skip
    kinds: dict[str, Any] = {
        "ViT": lambda: (t.ViTConfig(**SEES), [t.ViTImageProcessorPil(size=SQUARE)]),
        "DeiT": lambda: (t.DeiTConfig(**SEES), [t.DeiTImageProcessorPil(**to_square)]),
        "Dinov2WithRegisters": lambda: (
            t.Dinov2WithRegistersConfig(**SEES), [t.BitImageProcessorPil(**to_square)],
        ),
        "DINOv3ViT": lambda: (t.DINOv3ViTConfig(**SEES, num_register_tokens=3), [SETTINGS]),
        "Beit": lambda: (
            t.BeitConfig(**SEES, use_absolute_position_embeddings=True),
            [t.BeitImageProcessorPil(size=SQUARE, crop_size=SQUARE)],
        ),
        "Yolos": lambda: (
            t.YolosConfig(**SEES | {"image_size": [32, 48], "num_detection_tokens": 4}),
            [t.YolosImageProcessorPil(size={"shortest_edge": 32, "longest_edge": 64})],
        ),
        "Swin": lambda: (
            t.SwinConfig(image_size=32, patch_size=4, embed_dim=16, depths=[2, 2],
                         num_heads=[2, 2], window_size=4),
            [t.ViTImageProcessorPil(size=SQUARE)],
        ),
        "VideoMAE": lambda: (
            t.VideoMAEConfig(**SEES, num_frames=4),
            [t.VideoMAEImageProcessorPil(size={"shortest_edge": 32}, crop_size=SQUARE)],
        ),
        "CLIP": lambda: (
            t.CLIPConfig(**both, projection_dim=16),
            [t.CLIPImageProcessorPil(**to_square), tokenizer()],
        ),
        "Siglip": lambda: (
            t.SiglipConfig(**both), [t.SiglipImageProcessorPil(size=SQUARE), tokenizer()],
        ),
        "Llava": lambda: (
            t.LlavaConfig(**llava), [t.CLIPImageProcessorPil(**to_square), tokenizer()],
        ),
        "Qwen2VL": lambda: (
            t.Qwen2VLConfig(**qwen),
            [t.Qwen2VLImageProcessorPil(patch_size=8, merge_size=2, min_pixels=1024,
                                        max_pixels=4096,
                                        size={"shortest_edge": 1024, "longest_edge": 4096}),
             tokenizer()],
        ),
        "Whisper": lambda: (
            t.WhisperConfig(**whisper),
            [t.WhisperFeatureExtractor(feature_size=16, chunk_length=2), tokenizer()],
        ),
        "Wav2Vec2": lambda: (t.Wav2Vec2Config(**HEARS), [t.Wav2Vec2FeatureExtractor()]),
        "Hubert": lambda: (t.HubertConfig(**HEARS), [t.Wav2Vec2FeatureExtractor()]),
        "Bert": lambda: (t.BertConfig(**READS), [tokenizer()]),
        "Llama": lambda: (t.LlamaConfig(**READS), [tokenizer()]),
        "T5": lambda: (t.T5Config(**t5), [tokenizer()]),
    }  # fmt: skip
    config, readers = kinds[kind]()
    return getattr(t, f"{kind}Model")(config).eval(), readers


def saved(kind: str, folder: Path) -> Path:
    """Save a model as the hub would give it; return its folder."""
    model, readers = make(kind)
    model.save_pretrained(folder)
    for reader in readers:
        if isinstance(reader, dict):
            (folder / "preprocessor_config.json").write_text(json.dumps(reader))
        else:
            reader.save_pretrained(folder)
    if kind == "Llava":
        said = {"processor_class": "LlavaProcessor", "patch_size": 8, "image_token": "<image>",
                "vision_feature_select_strategy": "default",
                "num_additional_image_tokens": 1}  # fmt: skip
        (folder / "processor_config.json").write_text(json.dumps(said))
    if kind == "Qwen2VL":
        named = {"image_token": "<image>", "video_token": "<film>", "vision_bos_token": "<start>",
                 "vision_eos_token": "<end>"}  # fmt: skip
        file = folder / "tokenizer_config.json"
        own = json.loads(file.read_text()) | {"model_specific_special_tokens": named}
        file.write_text(json.dumps(own))
    return folder


def pixels() -> np.ndarray:
    """Return random pixels, (40, 60, 3)."""
    return np.random.default_rng(0).integers(0, 256, (40, 60, 3)).astype(np.uint8)


def written_sound(path: Path, samples: np.ndarray, rate: int = 16000) -> Path:
    """Write samples, (N,) or (N, channels) from -1 to 1, as 16 bits."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1 if samples.ndim == 1 else samples.shape[1])
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((samples * 32767).astype("<i2").tobytes())
    return path
