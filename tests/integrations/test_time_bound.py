"""Files of a folder that would compute without end."""

from __future__ import annotations

import json
import re
import time

import pytest
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from remnant.errors import InvalidInput
from remnant.integrations import time_bound
from remnant.integrations.folder_checks import check_tokenizer
from remnant.integrations.time_bound import check_patterns

NAMES = [f"model.layers.{layer}.self_attn.{part}_proj" for layer in range(8) for part in "qkvo"]


def spin():
    while True:
        pass


def test_a_pattern_or_a_loop_is_interrupted():
    began = time.monotonic()
    with pytest.raises(TimeoutError), time_bound.time_bound(0.2):
        re.fullmatch(r"(a+)+$", "a" * 60 + "!")
    with pytest.raises(TimeoutError), time_bound.time_bound(0.2):
        spin()
    assert time.monotonic() - began < 5
    with time_bound.time_bound(0.2):
        pass
    time.sleep(0.3)  # no alarm is left


@pytest.mark.parametrize(
    "fields",
    [
        {"target_modules": r"((\w+)*\.?)*!"},
        {"exclude_modules": r"(\w+\.?)+!"},
        {"rank_pattern": {r"(\w+\.?)+!": 4}},
        {"layers_pattern": ["layers", r"([a-z_.0-9]+)+!"]},
    ],
)
def test_an_evil_pattern_of_an_adapter_is_one_sentence(fields, monkeypatch, tmp_path):
    monkeypatch.setattr(time_bound, "SECONDS", 0.3)
    file = tmp_path / "adapter_config.json"
    with pytest.raises(InvalidInput, match=f"a pattern in {next(iter(fields))} takes longer than"):
        check_patterns(file, fields, NAMES)


@pytest.mark.parametrize(
    "given",
    [
        "all-linear",
        r".*\.(q_proj|v_proj)$",
        r"(?:.*?(?:language|text).*?(?:self_attn|mlp).*?(?:q_proj|k_proj).*?)"
        r"|(?:\bmodel\.layers\.[\d]{1,}\.(?:self_attn|mlp)\.(?:(?:q_proj|k_proj)))",
        ["q_proj", "v_proj"],
        "(",
        3,
        None,
        [1, None],
    ],
)
def test_patterns_in_use_pass(given, tmp_path):
    check_patterns(tmp_path, {"target_modules": given, "rank_pattern": {"q_proj": 4}}, NAMES)


def saved(folder, **rules):
    """A byte-level tokenizer with these rules."""
    tokenizer = Tokenizer(models.BPE({letter: at for at, letter in enumerate("abc")}, []))
    for name, rule in rules.items():
        setattr(tokenizer, name, rule)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


EVIL = {
    "a repeated group": {"pre_tokenizer": pre_tokenizers.Split(Regex(r"(q+)+$"), "isolated")},
    "replacements": {
        "normalizer": normalizers.Sequence([normalizers.Replace("a", "aaaaaaaaaa")] * 11)
    },
}


@pytest.mark.parametrize("kind", EVIL)
def test_rules_of_a_tokenizer_that_do_not_end_are_one_sentence(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(time_bound, "_TOKENIZER_SECONDS", 3.0)
    with pytest.raises(InvalidInput, match=r"tokenizer\.json is damaged: its rules"):
        check_tokenizer(saved(tmp_path, **EVIL[kind]))


def test_nested_rules_are_tried_and_rules_in_use_pass(tmp_path, monkeypatch):
    ran = []
    whole = time_bound.subprocess.run

    def run(*arguments, **options):
        ran.append(whole(*arguments, **options))
        return ran[-1]

    monkeypatch.setattr(time_bound.subprocess, "run", run)
    gpt = r"(?i:'s|'t|'re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+(?!\S)"
    check_tokenizer(
        saved(
            tmp_path,
            pre_tokenizer=pre_tokenizers.Sequence(
                [pre_tokenizers.Split(Regex(gpt), "isolated"), pre_tokenizers.ByteLevel()]
            ),
            normalizer=normalizers.Sequence(
                [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
            ),
            decoder=decoders.Replace("▁", " "),
        )
    )
    assert ran == []
    marks = pre_tokenizers.Split(Regex(r"(\p{L}\p{M}*)+|\s"), "isolated")
    check_tokenizer(saved(tmp_path, pre_tokenizer=marks))
    assert [each.returncode for each in ran] == [0]
    rules = json.loads((tmp_path / "tokenizer.json").read_text())
    for _ in range(10):
        rules["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [rules["pre_tokenizer"]] * 2}
    (tmp_path / "tokenizer.json").write_text(json.dumps(rules))
    check_tokenizer(tmp_path)
    assert len(ran) == 2
