"""Small models of every architecture of transformers, with random weights that tell masks apart.

`build("llama")` returns a model and what to give it. A name may have a variant: `gemma3@picture`.
"""

import inspect
import re
import zlib
from typing import Any

Model = Any  # of transformers, which is imported late
COUNT, TARGET, VOCAB = 40, 24, 128
FIRST = 30
"""Smallest token of a text: lower ones are special to one model or another."""

RULES: list[tuple[str, int | float]] = [
    (r"initializer_range|init_std|initializer_cutoff_factor", 0.2),
    (r"pad_token_id", 0),
    (r"bos_token_id|decoder_start_token_id|cls_token_id", 1),
    (r"eos_token_id|sep_token_id", 2),
    (r".*vocab_size(_per_layer_input)?|.*_vocab_size", VOCAB),
    (r"num_nextn_predict_layers|first_k_dense_replace|num_dense_layers|mamba_n_groups|n_groups", 1),
    (r"num_mtp_layers|num_kv_shared_layers", 0),
    (r".*num_key_value_heads|num_kv_heads|num_query_groups|multi_query_group_num", 2),
    (r"num_hidden_layers|n_layers?|num_layers|(en|de)coder_(num_hidden_)?layers"
     r"|num_(en|de)coder_layers|layers|n_blocks|num_blocks|depth|speech_encoder_layers", 4),
    (r".*attention_heads|.*num_heads|n_heads?|num_attn_heads|n_mamba_heads|mamba_n_heads"
     r"|index_n_heads|attention_heads|heads|nhead|mamba_num_heads|linear_num_.*heads", 4),
    (r"qk_nope_head_dim|v_head_dim|d_kv|d_head|dim_head|attention_head_size|kv_channels|head_dim"
     r"|swa_head_dim|swa_v_head_dim|index_head_dim|global_head_dim|linear_.*head_dim|mamba_d_head"
     r"|mamba_head_dim|linear_head_dim|attention_head_dim|mamba_headdim|query_pre_attn_scalar", 16),
    (r"qk_rope_head_dim|rotary_dim|rope_head_dim", 8),
    (r"qk_head_dim", 24),
    (r"hidden_size|d_model|n_embd|dim|emb_dim|embed_dim|embedding_size|hidden_dim|model_dim"
     r"|attention_hidden_size|word_embed_proj_dim|true_hidden_size|lru_width|intra_bottleneck_size"
     r"|input_embedding_size|output_embedding_size|pooler_hidden_size|decoder_hidden_size"
     r"|encoder_hidden_size|projection_dim|text_embed_dim|out_hidden_size|output_dim|backbone_hidden_size"
     r"|pronunciation_embed_dim|shape_embed_dim|lang_embed_dim|spkr_embed_dim|unit_embed_dim"
     r"|embedding_dim|conv_dim|entity_emb_size|hidden_size_global|audio_hidden_size", 64),
    (r".*intermediate_size.*|.*ffn_dim|d_ff|d_inner|dim_ff|dff|ffn_dim|.*feed_forward_size|ffn_hidden_size"
     r"|moe_shared_expert_intermediate_size|inner_dim|n_inner|mlp_dim|.*ffn_hidden_size", 64),
    (r"num_experts_per_tok(en)?|moe_topk|moe_k|top_k|top_k_experts|num_experts_per_token", 2),
    (r"n_group|topk_group|num_expert_group|n_shared_experts|limited_groups|num_shared_experts", 1),
    (r"(num_|n_)(local_|routed_)?experts|moe_num_experts|num_moe_experts|zero_expert_num", 4),
    (r"q_lora_rank|kv_lora_rank|o_lora_rank|adapter_rank|laurel_rank|gated_norm_rank|embedding_rank"
     r"|hc_lowrank|.*_lora_rank|mamba_dt_rank|time_step_rank", 16),
    (r".*max_position_embeddings|n_positions|n_ctx|max_seq_len(gth)?|.*max_(source|target)_positions"
     r"|context_length|max_(en|de)coder_position_embeddings|model_max_length|seq_length"
     r"|original_max_position_embeddings|mem_len", 256),
    (r"sliding_window(_size)?|attention_window(_size)?|window_size|local_window_size|keep_window_size"
     r"|swa_window|local_attention_window_len|local_attention|attention_chunk_size|local_attn_chunk_length"
     r"|lsh_attn_chunk_length|index_topk|local_radius", 8),
    (r"global_block_size", 4),
    (r"block_size", 4),
    (r"(mamba_)?(d_state|state_size)|ssm_state_size|(mamba_)?chunk_size", 16),
    (r"type_vocab_size", 2),
    (r"image_size|input_size", 32),
    (r"patch_size", 8),
]  # fmt: skip
"""What settings of a config are made, by their name."""

WHOLE_KV = {"num_key_value_heads": 4}
LATENT = WHOLE_KV | {"head_dim": 8}
LOCAL, FULL, LINEAR = "sliding_attention", "full_attention", "linear_attention"
WINDOWS = {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 2}
ROPE = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [4, 2, 2]}
BY_POSITION = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}
SWIN = {"image_size": 32, "patch_size": 2, "depths": [2, 2], "num_heads": [2, 4], "embed_dim": 32,
        "hidden_size": 64, "window_size": 4}  # fmt: skip

# A key with a dot is of a config within the config.
SETTINGS: dict[str, dict[str, Any]] = {
    **dict.fromkeys(["axk2", "deepseek_v32", "esmc", "glm4_moe_lite", "glm_moe_dsa", "minicpm3",
                    "hy_v4", "mistral_large4_text", "mistral4"], WHOLE_KV),
    **dict.fromkeys(["axk1", "deepseek_v3", "longcat_flash", "youtu"], LATENT),
    "deepseek_v2": LATENT | {"num_experts_per_tok": 2},
    **dict.fromkeys(["qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "mixtral", "phi3", "phimoe",
                     "starcoder2", "mistral", "smollm3"], WINDOWS),
    "bailing_hybrid": WHOLE_KV | {"layer_group_size": 2},
    "bamba": {"mamba_d_head": 32, "attn_layer_indices": [1, 3]},
    "blt": {"local_attention_window_len": 8, "encoder_hash_byte_group_vocab": 128},
    "cohere_compass_text": {"layer_types": [LOCAL, FULL] * 2,
                            "rope_parameters": {LOCAL: ROPE, FULL: ROPE}},
    "dbrx": {"attn_config": {"kv_n_heads": 2, "rope_theta": 1e4, "clip_qkv": 8.0}},
    "deepseek_v4": {"num_key_value_heads": 1, "o_groups": 2, "layer_types":
                    ["sliding_attention", "compressed_sparse_attention",
                     "heavily_compressed_attention", "compressed_sparse_attention"],
                    "compress_rates": {"compressed_sparse_attention": 4,
                                       "heavily_compressed_attention": 8}},
    "dots1": {"n_routed_experts": 4, "n_group": 1, "topk_group": 1, "n_shared_experts": 1,
              "num_experts_per_tok": 2},
    "dots3_note_text": WHOLE_KV,
    "emu3": {"vocabulary_map": {"<|extra_200|>": 5, "<image>": 6, "<|visual token 000000|>": 7}},
    "esm": {"vocab_size": VOCAB, "position_embedding_type": "rotary", "token_dropout": False,
            "pad_token_id": 0, "mask_token_id": 3},
    "falcon": {"new_decoder_architecture": True},
    "falcon@multi_query": {"new_decoder_architecture": False, "multi_query": True},
    "falcon@alibi": {"alibi": True, "new_decoder_architecture": False, "multi_query": False,
                     "num_kv_heads": 4},
    "falcon_h1": {"mamba_d_ssm": 64, "mamba_d_head": 16},
    "florence2": {"vision_config.embed_dim": [16, 32, 32, 64], "vision_config.depths": [1] * 4,
                  "vision_config.num_heads": [2, 4, 4, 4], "vision_config.num_groups": [2, 4, 4, 4],
                  "vision_config.projection_dim": 64},
    "gemma2": {"attn_logit_softcapping": 2.0},
    "t5gemma": {"encoder.attn_logit_softcapping": 2.0, "decoder.attn_logit_softcapping": 2.0},
    "gemma3n_text": {"num_kv_shared_layers": 2},
    "gpt_neo": {"attention_types": [[["global", "local"], 2]]},
    "granitemoehybrid": {"mamba_d_head": 32, "layer_types": [LINEAR, FULL] * 2},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1},
    "kimi_linear": WHOLE_KV | {"layer_types": [LINEAR, FULL] * 2},
    "lfm2_moe": {"layer_types": ["conv", FULL] * 2},
    "llama4": {"text_config.attention_chunk_size": 16},
    "llama4_text": {"attention_chunk_size": 16},
    "mamba2": {"head_dim": 32},
    "minimax_m3_vl_text": {"layer_types": [FULL, "minimax_m3_sparse"] * 2, "index_block_size": 4,
                           "index_topk_blocks": 2, "index_n_heads": 2},
    "nystromformer@landmarks": {"num_landmarks": 8, "segment_means_seq_len": 40},
    "deberta": BY_POSITION,
    "deberta-v2": BY_POSITION,
    "bert@decoder": {"is_decoder": True},
    "big_bird@sparse": {"num_random_blocks": 1},
    "bigbird_pegasus@sparse": {"num_random_blocks": 1},
    "gemma2@both_ways": {"attn_logit_softcapping": 2.0, "use_bidirectional_attention": True},
    "gemma3_text@both_ways": {"use_bidirectional_attention": True},
    "gemma3_text@short": {"sliding_window": 64},
    "gpt2@scaled": {"scale_attn_by_inverse_layer_idx": True},
    "llama@one_kv_head": {"num_key_value_heads": 1},
    "llama@yarn": {"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0,
                                       "original_max_position_embeddings": 64}},
    "longt5@global": {"encoder_attention_type": "transient-global"},
    "mpt@clipped": {"attn_config.clip_qkv": 0.5, "attn_config.softmax_scale": 0.4},
    "mobilebert": {"normalization_type": "layer_norm"},
    "nemotron_h": {"n_groups": 1},
    "perceiver": {"num_latents": 12, "d_latents": 64, "num_self_attends_per_block": 4,
                  "num_self_attention_heads": 4, "num_cross_attention_heads": 4},
    "qwen4_exp_text": {"indexer_n_heads": 4, "indexer_kv_heads": 1, "indexer_head_dim": 16,
                       "indexer_budget": 8, "indexer_compress_ratio": 4},
    "reformer": {"axial_pos_embds": False, "attn_layers": ["local", "lsh"] * 2, "num_buckets": 4},
    "musicgen": {"num_codebooks": 1},
    "musicgen_melody": {"num_codebooks": 1},
    "swin": SWIN,
    "swinv2": SWIN,
    "donut-swin": SWIN,
    "maskformer-swin": SWIN,
    "audio-spectrogram-transformer": {"max_length": 64, "num_mel_bins": 32},
    "beit@rel": {"use_relative_position_bias": True, "use_shared_relative_position_bias": False},
    "gemma3@picture": {"mm_tokens_per_image": 4},
    "hiera": {"image_size": [32, 32], "patch_size": [7, 7], "depths": [1, 1, 1, 1], "embed_dim": 16,
              "num_heads": [1, 2, 4, 4], "embed_dim_multiplier": 2.0},
    "internvl@picture": {"vision_config.image_size": [32, 32], "vision_config.patch_size": [8, 8]},
    "clap": {"audio_config.hidden_size": 64, "audio_config.patch_embeds_hidden_size": 8,
             "audio_config.depths": [1, 1, 1, 1], "audio_config.num_attention_heads": [2, 2, 4, 4]},
    "align": {"projection_dim": 640},
    "moonshine": {"encoder_num_key_value_heads": 4, "decoder_num_key_value_heads": 4},
    "videomae": {"num_frames": 4, "tubelet_size": 2},
    "vivit": {"num_frames": 4, "tubelet_size": [2, 8, 8]},
    "yolos": {"image_size": [32, 48]},
    "rf_detr": {"num_queries": 8},
    "qwen2_5_vl": {"vision_config.window_size": 32, "text_config.rope_parameters": ROPE},
    "qwen2_vl": {"text_config.rope_parameters": ROPE},
    "kosmos-2": {"latent_query_num": 8},
    "lw_detr": {"projector_scale_factors": [1.0], "num_queries": 8, "image_size": 256,
                "backbone_config.image_size": 256},
    "vibevoice_asr": {f"{each}_config.{key}": value for each in ("acoustic_tokenizer_encoder",
                      "semantic_tokenizer_encoder") for key, value in
                      {"num_filters": 4, "depths": [1] * 7}.items()},
    "whisper": {"max_source_positions": 32, "num_mel_bins": 8},
    "xlstm": {"chunk_size": 8},
    "xmod": {"default_language": "en_XX"},
    "zamba": {"layers_block_type": [LINEAR, "hybrid"] * 2, "attention_hidden_size": 128,
              "attention_head_dim": 32, "n_mamba_heads": 2},
    "zamba2": {"layers_block_type": [LINEAR, "hybrid"] * 2, "n_mamba_heads": 8,
               "attention_hidden_size": 128},
    "dots3_note": {"vision_config.pyramid_num_routed": [0, 0, 2, 2],
                   "vision_config.adapter_in_dim": 64, "vision_config.adapter_out_dim": 64,
                   "audio_config.adapter_input_size": 64, "audio_config.adapter_output_size": 64},
    "zaya": {"num_experts_per_tok": 1},
}  # fmt: skip
"""What an architecture is called with besides what RULES make small."""
for _name in ("qwen4_exp", "minimax_m3_vl", "dots3_note"):
    SETTINGS[_name] = SETTINGS.get(_name, {}) | {f"text_config.{key}": value
                       for key, value in SETTINGS[f"{_name}_text"].items()}  # fmt: skip
CONFIGS = {"musicgen": "musicgen_decoder", "musicgen_melody": "musicgen_melody_decoder"}
"""Of these the class of the model takes another config than its name says."""


def rule(key: str, value: object) -> Any:
    """Return what a setting becomes, or None: it stays as it is."""
    if isinstance(value, bool):
        return True if key == "use_sliding_window" else None
    for pattern, number in RULES:
        if re.fullmatch(pattern, key):
            if isinstance(value, int | float):
                return type(value)(number) if isinstance(value, float) else number
            if value is None and key in ("num_key_value_heads", "head_dim"):
                return number
            return 2 if key == "eos_token_id" and value is not None else None
    if re.search(r"token_(id|index)$", key) and isinstance(value, int):
        return 3 + zlib.crc32(key.encode()) % (FIRST - 3)
    return None


def settings_of(config_type: Any, own: dict[str, Any]) -> dict[str, Any]:
    """Return what a class of configs is called with, to be small."""
    from transformers import PreTrainedConfig

    default, made = config_type(), {}
    for key, value in vars(default).items():
        if isinstance(value, PreTrainedConfig):
            within = {name[len(key) + 1:]: each for name, each in own.items()
                      if name.startswith(f"{key}.")}  # fmt: skip
            made[key] = {"model_type": value.model_type, **settings_of(type(value), within)}
        elif key in ("layer_types", "layers_block_type") and len({*(value or [])}) > 1:
            made[key] = ([*dict.fromkeys(value)] * 4)[:4]  # every kind of layer
        elif (small := rule(key, value)) is not None:
            made[key] = small
    return made | {key: value for key, value in own.items() if "." not in key}


def config_of(name: str) -> Any:
    """Return the config of a small model."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    kind = name.partition("@")[0]
    if kind in CONFIGS:
        import transformers.models as models

        module = getattr(models, kind)
        config_type = next(
            getattr(module, each) for each in dir(module) if each.endswith("DecoderConfig")
        )
    else:
        config_type = CONFIG_MAPPING[kind]
    own = SETTINGS.get(kind, {}) | SETTINGS.get(name, {})
    return config_type(**settings_of(config_type, own))


def build(name: str) -> Model:
    """Return a small model; the same each time."""
    import torch
    import transformers
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

    torch.manual_seed(0)
    config = config_of(name)
    made_by = MODEL_MAPPING_NAMES[name.partition("@")[0]]
    made_by = made_by if isinstance(made_by, str) else made_by[0]
    model = getattr(transformers, made_by)(config).eval()
    enliven(model)
    return model


def enliven(model: Model) -> None:
    """Make what is constant random, and what is tiny large enough for scores to differ."""
    import torch

    with torch.no_grad():
        for name, values in model.named_parameters():
            if not values.is_floating_point() or values.numel() == 0:
                continue
            random = torch.Generator().manual_seed(zlib.crc32(name.encode()))
            noise = torch.randn(values.shape, generator=random)
            spread = values.float().std().item() if values.numel() > 1 else 0.0
            if re.search(r"relative_attention_bias|sink|rel_bias|position_bias", name):
                values.copy_(noise)
            elif not torch.isfinite(values).all():
                values.copy_(0.1 * noise)
            elif spread == 0.0:
                values.add_(0.2 * noise)
            elif values.ndim > 1 and spread < 0.1:
                values.mul_(0.15 / spread)


PICTURES = (
    "aimv2 aimv2_vision_model align altclip audio-spectrogram-transformer beit beit@rel blip "
    "chinese_clip clap clip clip_vision_model clipseg data2vec-audio data2vec-vision deit dinov2 "
    "dinov2_with_registers dinov3_vit donut-swin dpt flava florence2@picture gemma3@picture "
    "git@picture groupvit hiera hubert idefics3@picture ijepa internvl@picture janus@picture "
    "kosmos-2@picture llava@picture lw_detr maskformer-swin metaclip_2 mistral3@picture "
    "mlcd_vision_model moonshine owlvit paligemma@picture pixtral pvt qwen2_5_vl@picture "
    "qwen2_vl@picture qwen3_vl@picture radio rf_detr sam_vision_model segformer siglip "
    "siglip2_vision_model siglip_vision_model smolvlm@picture speech_to_text swin swinv2 "
    "timesformer unispeech videomae vilt vit vit_mae vit_msn vitdet vivit wav2vec2 "
    "wav2vec2-conformer wavlm whisper yolos"
)
"""Models of pictures and sound."""


def names() -> list[str]:
    """Return every architecture that is tried."""
    from transformers.models.auto import modeling_auto as auto

    text = {*auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, *auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
            *auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES}  # fmt: skip
    variants = [name for name in SETTINGS if "@" in name]
    return sorted({*text & {*auto.MODEL_MAPPING_NAMES}, *variants, *PICTURES.split()})


def inputs_of(name: str, model: Model) -> dict[str, Any]:
    """Return what a model is given."""
    import torch

    random = torch.Generator().manual_seed(1)

    def text(count: int) -> Any:
        return torch.randint(FIRST, VOCAB, (1, count), generator=random)

    def noise(*shape: int) -> Any:
        return torch.randn(shape, generator=random)

    config, takes = model.config, inspect.signature(model.forward).parameters
    picture = name in {*PICTURES.split(), *SHAPES} or not {"input_ids", "inputs"} & {*takes}
    given: dict[str, Any] = {}
    if "inputs" in takes:
        given["inputs"] = noise(1, COUNT, config.d_model)
    if picture and (shape := seen_or_heard(name, config)):
        given[next(each for each in SEEN if each in takes)] = noise(*shape)
    given |= {key: torch.tensor(value) for key, value in ALSO.get(name, {}).items()}
    if "input_ids" in takes:
        token = getattr(config, "image_token_id", None)
        if "pixel_values" in given and token is not None:
            count = picture_tokens(model, given)
            given["input_ids"] = torch.cat([text(6), torch.full((1, count), token), text(8)], dim=1)
        else:
            given["input_ids"] = text(COUNT)
    if config.is_encoder_decoder and "decoder_input_ids" in takes:
        given["decoder_input_ids"] = text(TARGET)
    return given


SEEN = ("pixel_values", "input_values", "input_features")
SHAPES = {
    "audio-spectrogram-transformer": (1, 64, 32), "speech_to_text": (1, COUNT, 80),
    "voxtral_realtime": (1, 128, 8 * COUNT), "whisper": (1, 8, 64), "clap": (1, 1, 1001, 64),
    "timesformer": (1, 2, 3, 32, 32),
    "videomae": (1, 4, 3, 32, 32), "vivit": (1, 4, 3, 32, 32), "moonshine": (1, 16000),
    "idefics3@picture": (1, 1, 3, 32, 32), "smolvlm@picture": (1, 1, 3, 32, 32),
    "qwen2_vl@picture": (64, 3 * 2 * 8 * 8), "qwen2_5_vl@picture": (64, 3 * 2 * 8 * 8),
    "qwen3_vl@picture": (64, 3 * 2 * 8 * 8), "siglip2_vision_model": (1, 16, 3 * 8 * 8),
}  # fmt: skip
GRID = {"image_grid_thw": [[1, 8, 8]]}
ALSO: dict[str, dict[str, Any]] = {
    "siglip2_vision_model": {"pixel_attention_mask": [[1] * 16], "spatial_shapes": [[4, 4]]},
    "clap": {"is_longer": [[False]]},
    "kosmos-2@picture": {"image_embeds_position_mask": [[0, 1] + [1] * 7 + [0] * 31]},
    "qwen2_vl@picture": GRID | {"mm_token_type_ids": [[0] * 6 + [1] * 16 + [0] * 8]},
    "qwen2_5_vl@picture": GRID | {"mm_token_type_ids": [[0] * 6 + [1] * 16 + [0] * 8]},
    "qwen3_vl@picture": GRID | {"mm_token_type_ids": [[0] * 6 + [1] * 16 + [0] * 8]},
    "mistral3@picture": {"image_sizes": [[32, 32]]},
}  # fmt: skip


def seen_or_heard(name: str, config: Any) -> tuple[int, ...]:
    """Return the shape of a picture or a sound."""
    if name in SHAPES:
        return SHAPES[name]
    if hasattr(config, "conv_stride") and hasattr(config, "conv_kernel"):
        return (1, 12800)
    for each in (
        config,
        *(getattr(config, part, None) for part in ("vision_config", "image_config")),
    ):
        if size := getattr(each, "image_size", None):
            return (
                1,
                getattr(each, "num_channels", 3),
                *(size if isinstance(size, list | tuple) else (size, size)),
            )
    return (1, 3, 32, 32)


def picture_tokens(model: Model, given: dict[str, Any]) -> int:
    """Return how many tokens a picture takes in a text."""
    import torch

    with torch.no_grad():
        made = model.get_image_features(**given)
    made = getattr(made, "pooler_output", made)
    parts = made if isinstance(made, list | tuple) else [made]
    return sum(part.shape[:-1].numel() for part in parts)
