"""From a GGUF file to a Hugging Face folder in float32: quantised weights become plain ones.

python examples/convert_gguf.py --source FILE.gguf --out FOLDER
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=Path, required=True, help="a .gguf file")
    parser.add_argument("--out", type=Path, required=True, help="the folder to write")
    given = parser.parse_args()
    if not given.source.is_file():
        raise SystemExit(f"--source {given.source} is not a file.")
    where = {"gguf_file": given.source.name, "local_files_only": True}
    folder = str(given.source.parent)
    read = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **where)
    config = read.config
    if hasattr(config, "quantization_config"):  # the weights are plain now, and may be saved
        del config.quantization_config
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.load_state_dict(read.state_dict())
    model.save_pretrained(given.out)
    tokenizer = AutoTokenizer.from_pretrained(folder, **where)
    for name in ("bos_token", "eos_token"):  # the file's own, which the reader may mix up
        if (token := getattr(config, f"{name}_id")) is not None:
            setattr(tokenizer, name, tokenizer.convert_ids_to_tokens(token))
    tokenizer.save_pretrained(given.out)
    print(f"wrote {given.out}")


if __name__ == "__main__":
    main()
