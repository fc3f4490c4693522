"""From llama2.c's stories260K.bin and tok512.bin to a Hugging Face folder.

python examples/convert_stories260k.py --source FOLDER --out FOLDER
"""

from __future__ import annotations

import argparse
import struct
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, processors
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

BLANK = "▁"  # how pieces write a blank
SPECIAL = ("<unk>", "<s>", "</s>")


def read_model(path: Path) -> LlamaForCausalLM:
    """Seven int32, then float32 weights in order; a negative vocabulary has a head of its own."""
    header = np.fromfile(path, "<i4", 7).tolist()
    dim, hidden, layers, heads, kv_heads, vocabulary, longest = header
    shared, vocabulary = vocabulary > 0, abs(vocabulary)
    kv_dim, half = dim * kv_heads // heads, dim // heads // 2
    weights = np.fromfile(path, "<f4", offset=28)
    place = 0

    def take(*shape: int) -> torch.Tensor:
        nonlocal place
        start, place = place, place + int(np.prod(shape))
        return torch.from_numpy(weights[start:place].reshape(shape).copy())

    def halves(matrix: torch.Tensor, count: int) -> torch.Tensor:
        # Here neighbours rotate together; there the first half of a head with the second.
        return matrix.view(count, half, 2, dim).transpose(1, 2).reshape(-1, dim)

    embedding = take(vocabulary, dim)
    before_attention = take(layers, dim)
    query, key = take(layers, dim, dim), take(layers, kv_dim, dim)
    value, output = take(layers, kv_dim, dim), take(layers, dim, dim)
    before_dense = take(layers, dim)
    gate, down, up = take(layers, hidden, dim), take(layers, dim, hidden), take(layers, hidden, dim)
    last_norm = take(dim)
    take(2, longest, half)  # the rotations, which the library computes itself
    head = embedding if shared else take(vocabulary, dim)
    if place != len(weights):
        raise SystemExit(f"{path} holds {len(weights)} weights where its header tells of {place}.")

    named = {"model.embed_tokens": embedding, "model.norm": last_norm, "lm_head": head}
    for layer in range(layers):
        named |= {
            f"model.layers.{layer}.{name}": tensor
            for name, tensor in {
                "input_layernorm": before_attention[layer],
                "post_attention_layernorm": before_dense[layer],
                "self_attn.q_proj": halves(query[layer], heads),
                "self_attn.k_proj": halves(key[layer], kv_heads),
                "self_attn.v_proj": value[layer],
                "self_attn.o_proj": output[layer],
                "mlp.gate_proj": gate[layer],
                "mlp.down_proj": down[layer],
                "mlp.up_proj": up[layer],
            }.items()
        }
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=dim,
        intermediate_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        max_position_embeddings=longest,
        rms_norm_eps=1e-5,
        rope_theta=10000.0,
        tie_word_embeddings=shared,
        bos_token_id=1,
        eos_token_id=2,
    )
    model = LlamaForCausalLM(config)
    model.load_state_dict({f"{name}.weight": tensor for name, tensor in named.items()})
    return model.eval()


def read_pieces(path: Path) -> tuple[list[str], list[float]]:
    """One int32, then (float32 score, int32 length, bytes) for every piece."""
    raw, place = path.read_bytes(), 4
    pieces, scores = [], []
    while place < len(raw):
        score, length = struct.unpack_from("<fi", raw, place)
        piece = raw[place + 8 : place + 8 + length].decode("utf-8")
        pieces.append(piece.replace(" ", BLANK))
        scores.append(score)
        place += 8 + length
    return [*SPECIAL, *pieces[len(SPECIAL) :]], scores


def make_tokenizer(pieces: list[str], scores: list[float]) -> PreTrainedTokenizerFast:
    """Join the neighbours that make the piece of the highest score until no two make one."""
    ids = {piece: place for place, piece in enumerate(pieces)}
    joins = [
        (-scores[ids[piece]], piece[:cut], piece[cut:])
        for piece in pieces[len(SPECIAL) :]
        for cut in range(1, len(piece))
        if piece[:cut] in ids and piece[cut:] in ids
    ]
    merges = [(left, right) for _, left, right in sorted(joins, key=lambda join: join[0])]
    made = Tokenizer(models.BPE(ids, merges, unk_token="<unk>", byte_fallback=True))
    made.normalizer = normalizers.Sequence(
        [normalizers.Prepend(BLANK), normalizers.Replace(" ", BLANK)]
    )
    made.decoder = decoders.Sequence(
        [
            decoders.Replace(BLANK, " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=made,
        unk_token="<unk>",
        bos_token="<s>",
        eos_token="</s>",
        split_special_tokens=True,  # "<s>" in a text is three characters
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=Path, required=True, help="holds the two .bin files")
    parser.add_argument("--out", type=Path, required=True, help="the folder to write")
    given = parser.parse_args()
    read_model(given.source / "stories260K.bin").save_pretrained(given.out)
    make_tokenizer(*read_pieces(given.source / "tok512.bin")).save_pretrained(given.out)
    print(f"wrote {given.out}")


if __name__ == "__main__":
    main()
