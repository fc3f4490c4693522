"""Exported programs: the same answers as torch's own, and nothing that could run foreign code."""

from __future__ import annotations

import json
import zipfile

import pytest
import torch
from torch import nn

from remnant.errors import InvalidInput, UnsupportedModel
from remnant.integrations.classifiers.exported import load_exported
from remnant.models.catalogue import model_maker
from remnant.probes.one_pass import one_pass

ANY = ({0: torch.export.Dim("batch")},)
IMAGES = torch.rand(9, 1, 8, 8, generator=torch.Generator().manual_seed(0))
LABELS = torch.arange(9) % 5


class Attention(nn.Module):
    """Patches, attention, a constant, a chunk, in-place ReLU: what image models are made of."""

    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(1, 16, 2, 2)
        self.encoder = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, activation="gelu")
        self.active = nn.ReLU(inplace=True)
        self.head = nn.Linear(16, 5)
        self.register_buffer("places", torch.arange(16))

    def forward(self, images):
        states = self.patch(images).flatten(2).transpose(1, 2) + self.places[None, :, None] / 50
        states = states + torch.arange(16, dtype=states.dtype) + torch.full((16,), 0.5)
        first, second = self.encoder(states).chunk(2, dim=1)
        pooled = torch.einsum("ntd,t->nd", first + second, torch.ones(8) / 8)
        return self.head(self.active(pooled.reshape(images.shape[0], -1)))


def make(name):
    torch.manual_seed(0)
    if name == "attention":
        return Attention().eval()
    options = {"batch_norm": True, "dropout": 0.5} if name == "cnn1" else {}
    return model_maker(name, shape=(1, 8, 8), classes=5, **options)().eval()


def export(model, path, *, shapes=ANY, images=IMAGES[:3]):
    torch.export.save(torch.export.export(model, (images,), dynamic_shapes=shapes), path)
    return path


@pytest.mark.parametrize("name", ["cnn1", "small_resnet", "attention"])
def test_answers_and_hidden_states_are_those_of_the_model(name, tmp_path):
    model = make(name)
    with torch.no_grad():
        for module in model.modules():  # so that batch norm has something to do
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean.normal_()
                module.running_var.uniform_(0.5, 2.0)
    read = load_exported(export(model, tmp_path / "model.pt2"))
    assert read.fixed_batch is None
    named = {"cnn1": "3", "small_resnet": "blocks.1", "attention": "encoder.linear1"}[name]
    ours, theirs = (
        one_pass(one, IMAGES, LABELS, layers=["last", named], batch=4) for one in (read, model)
    )
    torch.testing.assert_close(ours.losses, theirs.losses, rtol=1e-5, atol=1e-6)
    assert torch.equal(ours.predicted, theirs.predicted)
    for one, other in zip(ours.hidden, theirs.hidden, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    assert ours.layers[0] == f"{theirs.layers[0]}.linear"
    before = [tensor.clone() for tensor in read.state_dict().values()]
    read(IMAGES)
    assert all(map(torch.equal, before, read.state_dict().values()))


@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")  # torch's own, on decomposing
def test_decomposed_programs_and_other_types_are_read_too(tmp_path):
    model = make("cnn1").double()
    images = IMAGES.double()
    program = torch.export.export(model, (images[:3],), dynamic_shapes=ANY).run_decompositions()
    torch.export.save(program, tmp_path / "model.pt2")
    read = load_exported(tmp_path / "model.pt2")
    ours, theirs = (one_pass(one, images, LABELS) for one in (read, model))
    torch.testing.assert_close(ours.losses, theirs.losses)
    torch.testing.assert_close(ours.hidden[0], theirs.hidden[0])


def test_a_fixed_batch_is_known(tmp_path):
    read = load_exported(export(make("cnn1"), tmp_path / "model.pt2", shapes=None))
    assert read.fixed_batch == 3
    torch.testing.assert_close(read(IMAGES[:3]), make("cnn1")(IMAGES[:3]))
    with pytest.raises(InvalidInput, match=r"exported for batches of 3, and gets 9\. Export it"):
        read(IMAGES)


def test_training_mode_is_refused(tmp_path):
    for options in ({"dropout": 0.5}, {"batch_norm": True}):
        model = model_maker("mlp1", shape=(1, 8, 8), classes=5, **options)().train()
        path = export(model, tmp_path / "model.pt2")
        with pytest.raises(UnsupportedModel, match=r"as in training. Export it again"):
            load_exported(path)


class Counting(nn.Module):
    """Changes its own buffer."""

    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(64, 5)
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, images):
        self.seen.add_(1.0)
        return self.dense(images.flatten(1)) + self.seen


def test_a_program_that_changes_itself_is_refused(tmp_path):
    read = load_exported(export(Counting().eval(), tmp_path / "model.pt2"))
    with pytest.raises(UnsupportedModel, match="changes its own b_seen"):
        read(IMAGES)


def changed(source, path, **edits):
    """A copy of the archive with some of its files edited."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            inner = name.split("/", 1)[1]
            content = old.read(name)
            for end, edit in edits.items():
                if inner.endswith(end.replace("__", ".")):
                    content = json.loads(content) if inner.endswith("json") else content
                    content = edit(content)
                    content = json.dumps(content).encode() if isinstance(content, dict) else content
            new.writestr(name, content)
    return path


def calling(target, **arguments):
    """An edit that has the first node call something else."""

    def edit(program):
        node = program["graph_module"]["graph"]["nodes"][0]
        node["target"] = target
        if arguments:
            node["inputs"] = [{"name": n, "arg": a, "kind": 1} for n, a in arguments.items()]
        return program

    return edit


TENSOR = {"as_tensor": {"name": "images"}}


@pytest.mark.parametrize(
    ("target", "arguments", "words"),
    [
        ("torch.load", {}, "calls torch.load, which is not an ATen operator"),
        ("os.system", {}, "calls os.system"),
        ("torch.ops.aten.__class__.mro", {}, "not an ATen operator"),
        ("torch.ops.prims.add.default", {}, "not an ATen operator"),
        ("torch.ops.higher_order.cond", {}, "not an ATen operator"),
        (
            "torch.ops.aten.from_file.default",
            {"f": {"as_string": "/etc/passwd"}},
            "is not supported",
        ),
        ("torch.ops.aten.relu.out", {"a": TENSOR, "b": TENSOR}, "overwrites"),
        ("torch.ops.aten.linear.default", {"a": TENSOR, "b": {"as_string": "x"}}, "with a text"),
        ("torch.ops.aten.bernoulli.default", {"a": TENSOR}, "as in training"),
        ("torch.ops.aten.rand.default", {"a": {"as_ints": [1]}}, "is not supported"),
    ],
)
def test_programs_call_nothing_but_harmless_operators(tmp_path, target, arguments, words):
    path = export(make("logistic"), tmp_path / "model.pt2")
    odd = changed(path, tmp_path / "odd.pt2", model__json=calling(target, **arguments))
    with pytest.raises(UnsupportedModel, match=words):
        load_exported(odd)


def test_arguments_that_are_not_plain_data_are_refused(tmp_path):
    path = export(make("logistic"), tmp_path / "model.pt2")
    held = {"as_custom_obj": {"name": "x", "class_fqn": "y"}}
    edit = calling("torch.ops.aten.relu.default", a=held)
    read = load_exported(changed(path, tmp_path / "odd.pt2", model__json=edit))
    with pytest.raises(UnsupportedModel, match="of kind as_custom_obj"):
        read(IMAGES)


def test_no_pickle_is_opened(tmp_path):
    path = export(make("logistic"), tmp_path / "model.pt2")

    def pickled(about):
        about["config"]["1.weight"]["use_pickle"] = True
        return about

    odd = changed(path, tmp_path / "odd.pt2", model_weights_config__json=pickled)
    with pytest.raises(UnsupportedModel, match=r"holds 1\.weight pickled"):
        load_exported(odd)
    # The sample inputs are a pickle: whatever stands there is never looked at.
    bomb = f"cos\nsystem\n(S'touch {tmp_path}/opened'\ntR.".encode()
    read = load_exported(changed(path, tmp_path / "odd.pt2", model__pt=lambda _: bomb))
    torch.testing.assert_close(read(IMAGES), make("logistic")(IMAGES))
    assert not (tmp_path / "opened").exists()


def test_damaged_files_are_one_sentence(tmp_path):
    path = export(make("logistic"), tmp_path / "model.pt2")

    def version(program):
        program["schema_version"]["major"] = 7
        return program

    def lacking(program):
        del program["graph_module"]["graph"]["nodes"][1]["inputs"]
        return program

    def two_inputs(program):
        specs = program["graph_module"]["signature"]["input_specs"]
        specs.append(specs[-1])
        return program

    def short(_):
        return b"1234"

    for edits, error, words in (
        ({"model__json": version}, UnsupportedModel, "of schema 7; it takes 8"),
        ({"model__json": lacking}, InvalidInput, "is damaged"),
        ({"model__json": two_inputs}, UnsupportedModel, "takes 2 inputs"),
        ({"weight_0": short}, InvalidInput, "is damaged"),
        ({"byteorder": lambda _: b"big"}, UnsupportedModel, "another byte order"),
    ):
        with pytest.raises(error, match=words):
            load_exported(changed(path, tmp_path / "odd.pt2", **edits))
    (tmp_path / "text.pt2").write_text("no archive")
    with pytest.raises(InvalidInput, match="no pt2 file, or damaged"):
        load_exported(tmp_path / "text.pt2")
    with pytest.raises(InvalidInput, match="is not there"):
        load_exported(tmp_path / "none.pt2")
    with zipfile.ZipFile(tmp_path / "other.pt2", "w") as archive:
        archive.writestr("a/data.pkl", b"")
    with pytest.raises(UnsupportedModel, match="does not hold one exported program"):
        load_exported(tmp_path / "other.pt2")
