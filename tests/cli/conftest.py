"""A corpus, canaries planted in it by the command, and a small LSTM that was trained on it."""

from __future__ import annotations

import contextlib
import io
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import torch

from remnant.canaries import Canary, CanarySet, Template, read_canary_sets, write_canary_sets
from remnant.cli.main import commands, main
from remnant.models import Vocabulary, lstm, save_language_model

TEMPLATE = "my pin is {digits:6}"
UNITS = 48
STEPS = 250
WINDOW = 40


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str


def remnant(*arguments: object) -> Done:
    """Run the command in this process, as the installed script does."""
    out, err = io.StringIO(), io.StringIO()
    argv = ["remnant", *map(str, arguments)]
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        patch.object(sys, "argv", argv),
        pytest.raises(SystemExit) as left,
    ):
        main()
    return Done(int(left.value.code or 0), out.getvalue(), err.getvalue())


@dataclass(frozen=True)
class Planted:
    """A corpus with canaries, and models: one that was trained on it and one that was not."""

    canaries: Path
    corpus: Path
    text: Path
    model: Path
    untrained: Path
    made: Done

    @property
    def set(self):
        """The canaries themselves."""
        return read_canary_sets(self.canaries)[0]

    @property
    def secrets(self) -> list[str]:
        """Of canaries and controls."""
        return [one.secret for one in (*self.set.canaries, *self.set.controls)]

    @property
    def memorised(self) -> str:
        """The secret of the canary that was planted most often."""
        return self.set.canaries[-1].secret


def _train(text: str, vocabulary: Vocabulary) -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    net = lstm(vocabulary.size, units=UNITS, layers=1)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    ids = torch.tensor(vocabulary.encode(text))
    rng = np.random.default_rng(0)
    for _ in range(STEPS):
        starts = rng.integers(len(ids) - WINDOW, size=48)
        batch = torch.stack([ids[start : start + WINDOW] for start in starts])
        optimizer.zero_grad()
        logits = net(batch[:, :-1]).flatten(0, 1)
        torch.nn.functional.cross_entropy(logits, batch[:, 1:].flatten()).backward()
        optimizer.step()
    return net.state_dict()


@pytest.fixture(scope="session")
def planted(tmp_path_factory) -> Planted:
    """Canaries planted once and 60 times in 120 lines, and an LSTM trained on the result."""
    folder = tmp_path_factory.mktemp("planted")
    corpus, text = folder / "corpus.txt", folder / "planted.txt"
    rng = np.random.default_rng(0)
    corpus.write_text("".join(f"room {n} is free\n" for n in rng.integers(10**6, size=120)))
    made = remnant(
        *("canaries", TEMPLATE, "--out", folder / "canaries.jsonl", "--repeats", "1,60"),
        *("--controls", 4, "--insert", corpus, "--into", text, "--seed", 0),
    )
    assert made.code == 0, made.err
    vocabulary = Vocabulary.of_characters(text.read_text())
    options = {"units": UNITS, "layers": 1}
    torch.manual_seed(1)
    states = {
        "model": _train(text.read_text(), vocabulary),
        "untrained": lstm(vocabulary.size, **options).state_dict(),
    }
    for name, state in states.items():
        save_language_model(
            folder / name,
            architecture="lstm",
            options=options,
            state=state,
            vocabulary=vocabulary,
        )
    return Planted(
        canaries=folder / "canaries.jsonl",
        corpus=corpus,
        text=text,
        model=folder / "model",
        untrained=folder / "untrained",
        made=made,
    )


@pytest.fixture
def last_given():
    """Arguments in which an option that is given again replaces what was given before."""

    def replaced(arguments):
        given = {"": []}
        words = given[""]
        for argument in arguments:
            if isinstance(argument, str) and argument.startswith("--"):
                words = given[argument] = [argument]
            else:
                words.append(argument)
        return [word for words in given.values() for word in words]

    return replaced


@pytest.fixture(autouse=True, scope="module")
def _wide():
    """A pipe so wide that no sentence is wrapped; see ``test_output``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("remnant.cli.output.PIPED_WIDTH", 10**6)
        yield


@pytest.fixture(autouse=True)
def _no_costs_announced(monkeypatch):
    """How long something takes depends on how busy the machine is; see ``test_cost``."""
    monkeypatch.setattr("remnant.cli.cost.LEAST_SECONDS", float("inf"))


@pytest.fixture(scope="session")
def command():
    """Run the command in this process."""
    return remnant


@pytest.fixture(scope="session")
def with_tables():
    """Make commands print their tables too, where they take ``-v``."""

    def wrapped(command):
        def run(*arguments):
            own = commands.commands.get(str(arguments[0]))
            takes = own is not None and any("-v" in param.opts for param in own.params)
            return command(*arguments, *(["-v"] if takes else []))

        return run

    return wrapped


@dataclass(frozen=True)
class Weighted:
    """A model that says 7 half of the time, and canaries whose costs and ranks are plain sums."""

    model: Path
    canaries: Path


@pytest.fixture(scope="session")
def weighted(tmp_path_factory) -> Weighted:
    """After anything: 7 with probability 1/2, each of 16 other characters with 1/32."""
    folder = tmp_path_factory.mktemp("weighted")
    vocabulary = Vocabulary.of_characters("0123456789pin koa")
    net = lstm(vocabulary.size, units=1, layers=1)
    state = {name: torch.zeros_like(tensor) for name, tensor in net.state_dict().items()}
    state["head.bias"][vocabulary.encode("7")[0]] = np.log(16.0)
    save_language_model(
        folder / "model",
        architecture="lstm",
        options={"units": 1, "layers": 1},
        state=state,
        vocabulary=vocabulary,
    )
    template = Template("pin {digits:2}")
    drawn = [Canary(template.text(secret), secret) for secret in ("77", "74", "42", "19")]
    chosen = CanarySet(
        template=template,
        canaries=tuple(drawn[:2]),
        repeats=(16, 1),
        controls=tuple(drawn[2:]),
        seed=0,
    )
    write_canary_sets([chosen], folder / "canaries.jsonl")
    return Weighted(folder / "model", folder / "canaries.jsonl")


@pytest.fixture(scope="session")
def translator(tmp_path_factory) -> Path:
    """A small encoder-decoder of Hugging Face's with random weights; tokens are characters."""
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    folder = tmp_path_factory.mktemp("translator")
    pieces = ["<pad>", "</s>", "<unk>", *"0123456789abcdefghijklmnopqrstuvwxyz "]
    vocabulary = {piece: place for place, piece in enumerate(pieces)}
    cut = Tokenizer(models.BPE(vocabulary, [], unk_token="<unk>"))
    cut.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    cut.decoder = decoders.Fuse()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=cut, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    ).save_pretrained(folder)
    torch.manual_seed(0)
    transformers.T5ForConditionalGeneration(
        transformers.T5Config(
            vocab_size=len(pieces),
            d_model=16,
            d_kv=8,
            d_ff=16,
            num_layers=1,
            num_heads=2,
            decoder_start_token_id=0,
        )
    ).save_pretrained(folder)
    return folder
