"""monolayer models in TransformerLens, with its named hook points.

>>> bridge = monolayer.lens.bridge(model)                                  # a TransformerBridge       # doctest: +SKIP
>>> ids, mask = monolayer.lens.encode(bridge, [["EU", "rejects", "German", "call"]])                   # doctest: +SKIP
>>> logits, cache = bridge.run_with_cache(ids, attention_mask=mask)                                    # doctest: +SKIP

The model is one of TransformerLens's native ones: without norms, with its own mask, scores not divided by sqrt(d_head), and a
head with a bias. Labels are those of `Model.predict`: TransformerLens computes the same sums in another order, which the
certificate covers.

===================================  ===========================================================================
`embed.hook_out`, `pos_embed...`     the vectors of words, of places
`blocks.0.attn.hook_q`, `hook_k`     queries and keys, one number each for rank 1: [batch, n, heads, d_head]
`blocks.0.attn.hook_pattern`         the attention weights [batch, heads, query, key]; edits reweigh the output
`blocks.0.attn.hook_z`               the context ids: [batch, n, heads, d_head], before they are written by W_O
`blocks.0.hook_resid_mid`            the residual stream after attention
`blocks.0.mlp.hook_post`             the hidden units, which `Model.names` says the meaning of
`blocks.0.hook_resid_post`           what the head reads
`pre_mlp.hook_out`                   what the quantizer of `approximate` adds
===================================  ===========================================================================

A start token, where the model has one, stands at place 0 of these tensors; logits leave it out.
"""
from __future__ import annotations

import os
from typing import Any

import torch
from torch import nn
from transformer_lens.config import TransformerBridgeConfig
from transformer_lens.model_bridge import TransformerBridge
from transformer_lens.model_bridge.generalized_components import LinearBridge, MLPBridge
from transformer_lens.model_bridge.sources._bridge_builder import build_bridge_from_module
from transformer_lens.model_bridge.sources.native.model import NativeAttention, NativeMLP, NativeModel

from . import torch as plain
from ._model import Model
from ._native import MonolayerError

LONGEST = 4096  # where the model itself has no limit


def bridge(model: Model | plain.Transformer | str | os.PathLike) -> TransformerBridge:
    """The model in TransformerLens: a `TransformerBridge` with native blocks."""
    source = model
    if not isinstance(source, plain.Transformer):
        source = plain.load(model.directory if isinstance(model, Model) else model)
    config = _config(source)
    native = _Native(source, config)

    def components(adapter):
        if source.positions is None:
            adapter.component_mapping.pop("pos_embed")
        if source.pre_feed_forward is not None:
            parts = {"in": LinearBridge(name="fc_in"), "out": LinearBridge(name="fc_out")}
            adapter.component_mapping["pre_mlp"] = MLPBridge(name="pre", submodules=parts)

    bridged = build_bridge_from_module(
        native, "TransformerLensNative", tl_config=config, model_name="monolayer", post_adapter_hook=components
    )
    bridged.monolayer = (source.vocabulary, source.labels, source.encode)
    return bridged.eval()


def encode(bridge: TransformerBridge, sequences: list) -> tuple[torch.Tensor, torch.Tensor]:
    """Sequences of words (or of vectors) as one padded batch: ids (or vectors), and the attention mask."""
    return bridge.monolayer[2](sequences)


@torch.no_grad()
def predict(bridge: TransformerBridge, sequences: list) -> list:
    """The labels (outputs where there are none) of each of a list of sequences, computed by TransformerLens."""
    ids, mask = encode(bridge, sequences)
    logits = bridge(ids, attention_mask=mask)
    rows, labels = [y[: int(n)] for y, n in zip(logits, mask.sum(1))], bridge.monolayer[1]
    return rows if labels is None else [[labels[i] for i in y.argmax(-1).tolist()] for y in rows]


def _config(source: plain.Transformer) -> TransformerBridgeConfig:
    """Its sizes, as TransformerLens has them; what it cannot hold is an error."""
    attentions = [layer["attention"] for layer in source.config["layers"]]
    if not attentions or any(a is None or a["kind"] != "softmax" for a in attentions):
        raise MonolayerError("TransformerLens has no hardmax, and no layer without attention; monolayer.torch runs such models")
    if len({(a["heads"], a["head_size"]) for a in attentions}) > 1:
        raise MonolayerError("layers with different heads; TransformerLens has one number of heads for all")
    hidden = [layer["hidden"] for layer in source.config["layers"]]
    if 0 in hidden and any(hidden):
        raise MonolayerError("some layers have no feed-forward block; TransformerLens has one in all or in none")
    words = 1 if source.embedding is None else source.embedding.num_embeddings
    d = source.config["d"]
    return TransformerBridgeConfig(
        d_model=d, d_head=attentions[0]["head_size"], n_heads=attentions[0]["heads"], n_layers=len(attentions),
        n_ctx=source.config["max_length"] or LONGEST, d_vocab=words, d_mlp=max(hidden) or 1, attn_only=not any(hidden),
        d_vocab_out=d if source.head is None else source.head.out_features, act_fn="relu", normalization_type=None,
        attention_dir="bidirectional", use_attn_scale=False, init_weights=False, default_prepend_bos=False,
        architecture="TransformerLensNative",
    )


class _Native(NativeModel):
    """TransformerLens's own model with the weights of a compiled one, and with its start token and its mask."""

    def __init__(self, source: plain.Transformer, config: TransformerBridgeConfig):
        super().__init__(config)
        # Not a submodule: its numbers are copied, and hooks on it would not be heard.
        self._source = (source,)
        dtype = next(source.parameters()).dtype
        self.to(dtype)
        if source.embedding is not None:
            self.tok_embed.load_state_dict(source.embedding.state_dict())
        rows = None if source.positions is None else source.positions.weight.detach().clone()
        self.pos = None if rows is None else nn.Embedding.from_pretrained(rows, freeze=False)
        for block, layer in zip(self.layers, source.layers):
            _copy_attention(block.attn, layer["attention"])
            if "feed_forward" in layer:
                block.mlp = _mlp(layer["feed_forward"], config)
        self.pre = None if source.pre_feed_forward is None else _mlp(source.pre_feed_forward, config)
        self.head = nn.Linear(config.d_model, config.d_vocab_out, dtype=dtype)
        identity = {"weight": torch.eye(config.d_model, dtype=dtype), "bias": torch.zeros(config.d_model, dtype=dtype)}
        self.head.load_state_dict(identity if source.head is None else source.head.state_dict())

    def forward(self, input_ids=None, attention_mask=None, position_ids=None, inputs_embeds=None, **_: Any):
        (source,) = self._source
        given = input_ids if input_ids is not None else inputs_embeds
        real = torch.ones(given.shape[:2], dtype=torch.bool, device=given.device)
        real = real if attention_mask is None else attention_mask.bool()
        given, real, place = source.with_start(given, real)
        hidden = given if source.embedding is None or given.is_floating_point() else self.tok_embed(given)
        if self.pos is not None:
            hidden = hidden + self.pos(source.rows_of(place))
        if self.pre is not None:
            hidden = hidden + self.pre(hidden)
        for block, layer in zip(self.layers, source.layers):
            hidden_from = ~layer["attention"].visible(real, place).unsqueeze(1)  # [batch, 1, query, key]
            (hidden,) = block(hidden, attention_mask=hidden_from)
        logits = self.head(self.ln_out(hidden))
        return logits if source.start is None else logits[:, 1:]


def _copy_attention(target: NativeAttention, attention: plain.Attention) -> None:
    heads, size, d = attention.w_q.shape
    with torch.no_grad():
        for linear, weight in ((target.q, attention.w_q), (target.k, attention.w_k), (target.v, attention.w_v)):
            linear.weight.copy_(weight.reshape(heads * size, d))
        target.o.weight.copy_(attention.w_o.permute(1, 0, 2).reshape(d, heads * size))
        for linear in (target.q, target.k, target.v, target.o):
            if linear.bias is not None:
                linear.bias.zero_()
    target.scale = 1.0


def _mlp(block: plain.FeedForward, config: TransformerBridgeConfig) -> NativeMLP:
    mlp, (hidden, d) = NativeMLP(config), block.w1.shape
    mlp.fc_in, mlp.fc_out = nn.Linear(d, hidden, dtype=block.w1.dtype), nn.Linear(hidden, d, dtype=block.w1.dtype)
    with torch.no_grad():
        for target, weight in ((mlp.fc_in, block.w1), (mlp.fc_out, block.w2)):
            target.weight.copy_(weight)
        mlp.fc_in.bias.copy_(block.b1)
        mlp.fc_out.bias.copy_(block.b2)
    return mlp
