"""Plants canaries in Python's standard library and trains two LSTMs: one meets them, its twin not.

python examples/train_and_audit_lstm.py --out FOLDER
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from remnant import Population, Template
from remnant.canaries import insert_into_texts, make_canary_set, write_canary_sets
from remnant.data import standard_library_text, windows
from remnant.models import Vocabulary, save_language_model, sequence_model_maker

NAME, OPTIONS = "lstm", {"units": 64, "layers": 1}
STEPS, BATCH, WINDOW = 300, 32, 64


def epochs(rows: int, rng: np.random.Generator) -> np.ndarray:
    """Rows of each batch, ``(STEPS, BATCH)``: every epoch in a new random order."""
    count = STEPS * BATCH
    order = [rng.permutation(rows) for _ in range(-(-count // rows))]
    return np.concatenate(order)[:count].reshape(STEPS, BATCH)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="the folder to write")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)

    # The gate is about those planted once. Those of the same set that are planted 64 times have to
    # be found if the audit works at all.
    key, password = Template("API_KEY = {digits:6}"), Template("PASSWORD = {digits:6}")
    keys = make_canary_set(key, repeats=[1, 64], per_repeat=8, controls=20, seed=7)
    passwords = make_canary_set(password, repeats=[16, 64], per_repeat=2, controls=20, seed=7)
    write_canary_sets([keys, passwords], out / "canaries.jsonl")

    clean = standard_library_text(characters=200_000).train.splitlines()
    planted, _ = insert_into_texts(clean, keys, rng=rng)
    planted, _ = insert_into_texts(planted, passwords, rng=rng)
    texts = {"planted": "\n".join(planted), "twin": "\n".join(clean)}

    vocabulary = Vocabulary.of_characters(texts["planted"] + "0123456789")
    cut = [windows(vocabulary.encode_array(text), length=WINDOW) for text in texts.values()]
    store = np.concatenate(cut)  # windows of the planted text, then those of the clean one
    rows = np.stack([epochs(len(cut[0]), rng), len(cut[0]) + epochs(len(cut[1]), rng)], axis=1)

    make_model = sequence_model_maker(NAME, vocabulary_size=vocabulary.size, **OPTIONS)
    population = Population(make_model, seeds=[0, 0])
    population.fit(store[:, :-1], store[:, 1:], rows, optimizer="adam", lr=0.02)
    for member, name in enumerate(texts):
        save_language_model(
            out / name,
            architecture=NAME,
            options=OPTIONS,
            state=population.state_dict(member),
            vocabulary=vocabulary,
        )
        print(f"wrote {out / name}")


if __name__ == "__main__":
    main()
