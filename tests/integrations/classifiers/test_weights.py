"""Weights from a file in a network that is made here: what fits, and what is refused by name."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from remnant.errors import InvalidInput, PlanError, UnsupportedModel
from remnant.integrations.classifiers import array_samples, load_classifier
from remnant.integrations.classifiers.asking import ask
from remnant.models.catalogue import CATALOGUE, model_maker

IMAGES = torch.rand(7, 1, 8, 8, generator=torch.Generator().manual_seed(0))
MAKER = """
import torch
def make():
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 7), torch.nn.Linear(7, 5))
def wrong(size):
    return None
def broken():
    raise ZeroDivisionError("no size")
def nothing():
    return 3
number = 4
"""


@pytest.fixture
def saved(tmp_path, monkeypatch):
    """Return a function that writes the weights of a network, and make the folder the current."""
    (tmp_path / "own_networks.py").write_text(MAKER)
    (tmp_path / "bad_syntax.py").write_text("def make(:")
    monkeypatch.chdir(tmp_path)

    def save(state, name="weights.safetensors"):
        path = tmp_path / name
        save_file({key: value.contiguous() for key, value in state.items()}, path)
        return path

    return save


def made(name="cnn1", classes=5, **options):
    torch.manual_seed(0)
    return model_maker(name, shape=(1, 8, 8), classes=classes, **options)().eval()


def load(path, **more):
    return load_classifier(path, shape=(1, 8, 8), classes=3, **more).eval()


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_every_architecture_is_filled_and_the_weights_say_how_many_classes(saved, name):
    model = made(name, classes=11)
    read = load(saved(model.state_dict()), architecture=name)
    torch.testing.assert_close(read(IMAGES), model(IMAGES))


def test_options_and_wrappers_are_understood(saved):
    model = made("mlp1", width=0.25, batch_norm=True)
    wrapped = {f"module._orig_mod.{name}": one for name, one in model.state_dict().items()}
    options = {"width": 0.25, "batch_norm": True}
    read = load(saved(wrapped), architecture="mlp1", options=options)
    torch.testing.assert_close(read(IMAGES), model(IMAGES))
    counted = {n: t for n, t in model.state_dict().items() if not n.endswith("batches_tracked")}
    read = load(saved(counted), architecture="mlp1", options=options)
    torch.testing.assert_close(read(IMAGES), model(IMAGES))


def test_a_function_of_the_current_folder_makes_the_network(saved):
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 7), torch.nn.Linear(7, 5))
    read = load(saved(model.state_dict()), maker="own_networks:make")
    torch.testing.assert_close(read(IMAGES), model(IMAGES))
    half = {name: tensor.half() for name, tensor in model.state_dict().items()}
    read = load(saved(half), maker="own_networks:make")
    torch.testing.assert_close(read(IMAGES), model(IMAGES), atol=1e-2, rtol=1e-2)


def test_a_folder_is_found_before_an_installed_package_of_its_name(saved, tmp_path, monkeypatch):
    installed = tmp_path / "site" / "shadowed"
    installed.mkdir(parents=True)
    (installed / "__init__.py").write_text("")
    (installed / "networks.py").write_text("def make():\n    return None\n")
    monkeypatch.syspath_prepend(str(installed.parent))
    own = tmp_path / "work" / "shadowed"
    own.mkdir(parents=True)
    (own / "layers.py").write_text("from torch.nn import Flatten, Linear, Sequential\n")
    (own / "networks.py").write_text(
        "def make():\n"
        "    from shadowed.layers import Flatten, Linear, Sequential\n"
        "    return Sequential(Flatten(), Linear(64, 5))\n"
    )
    monkeypatch.chdir(own.parent)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 5))
    read = load(saved(model.state_dict()), maker="shadowed.networks:make")
    torch.testing.assert_close(read(IMAGES), model(IMAGES))


def test_faults_are_named(saved, tmp_path):
    state = made().state_dict()
    fine = saved(state)
    broken = saved({**state, "0.bias": state["0.bias"] * torch.nan}, "nan.safetensors")
    (tmp_path / "text.safetensors").write_text("nothing")
    (tmp_path / "model.pth").write_bytes(b"")
    (tmp_path / "model.onnx").write_bytes(b"")
    (tmp_path / "model.pt2").write_bytes(b"")
    (tmp_path / "empty.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    ours = {"architecture": "cnn1"}
    for path, options, error, words in (
        (
            fine,
            {"architecture": "mlp1"},
            InvalidInput,
            r"not those of mlp1 for samples of shape \(",
        ),
        (fine, {"architecture": "mlp1"}, InvalidInput, "the file lacks 1.weight, 1.bias, 3.weight"),
        (fine, {"architecture": "mlp1"}, InvalidInput, "the network has no 0.bias, 0.weight"),
        (fine, {"architecture": "cnn3"}, PlanError, "is not one of"),
        (fine, {**ours, "options": {"depth": 2}}, PlanError, "cnn1 has no option depth"),
        (fine, {}, InvalidInput, "holds weights only; it takes architecture= or maker="),
        (fine, {**ours, "maker": "a:b"}, InvalidInput, "and not both"),
        (fine, {"maker": "a:b", "options": {"x": 1}}, InvalidInput, "a maker takes none"),
        (fine, {"maker": "own_networks"}, InvalidInput, "not of the form package.module:function"),
        (fine, {"maker": "own_networks:make()"}, InvalidInput, "not of the form"),
        (fine, {"maker": "nowhere:make"}, InvalidInput, "nowhere cannot be imported: ModuleNotFo"),
        (fine, {"maker": "bad_syntax:make"}, InvalidInput, "cannot be imported: SyntaxError"),
        (fine, {"maker": "own_networks:number"}, InvalidInput, "has no function number"),
        (fine, {"maker": "own_networks:wrong"}, InvalidInput, "fails: TypeError: "),
        (fine, {"maker": "own_networks:broken"}, InvalidInput, "fails: ZeroDivisionError: no size"),
        (fine, {"maker": "own_networks:nothing"}, UnsupportedModel, "returns int, not a torch.nn"),
        (
            fine,
            {"maker": "own_networks:make"},
            InvalidInput,
            "are not those of the network of own_",
        ),
        (broken, ours, InvalidInput, "NaN or infinite weights, in 0.bias"),
        (tmp_path / "none.safetensors", ours, InvalidInput, "is not there"),
        (tmp_path / "text.safetensors", ours, InvalidInput, "no file of safetensors, or damaged"),
        (tmp_path / "empty.safetensors", ours, InvalidInput, "holds no tensor"),
        (
            tmp_path / "model.pth",
            ours,
            InvalidInput,
            "is a pickle.*torch.load.'model.pth', weights",
        ),
        (tmp_path / "model.onnx", ours, InvalidInput, "neither a .safetensors nor a .pt2 file"),
        (tmp_path / "model.pt2", ours, InvalidInput, "a whole program; it takes neither"),
        (tmp_path, ours, InvalidInput, "is a folder; for images and arrays it takes a file"),
        (fine, {**ours, "device": "cuda:99"}, InvalidInput, "device='cuda:99' cannot be used"),
    ):
        with pytest.raises(error, match=words):
            load(path, **options)


def test_samples_are_tensors_as_the_model_takes_them(tmp_path):
    images = np.random.default_rng(0).random((6, 8, 8, 3))
    np.savez(tmp_path / "a.npz", images=images, labels=np.arange(6))
    found = array_samples(tmp_path / "a.npz", mean=[0.5], std=[0.25])
    wanted = (np.moveaxis(images, 3, 1) - 0.5) / 0.25
    np.testing.assert_allclose(found.inputs.numpy(), wanted, rtol=1e-5, atol=1e-5)
    assert (found.shape, found.classes) == ((3, 8, 8), 6)
    assert array_samples(None, data_set="digits").shape == (1, 8, 8)
    for options, words in (
        ({"mean": [0.5]}, "mean and std belong together"),
        ({"data": None}, "it takes data= or data_set="),
    ):
        with pytest.raises(InvalidInput, match=words):
            array_samples(**{"data": tmp_path / "a.npz", **options})
    np.savez(tmp_path / "b.npz", inputs=np.ones((6, 3)), labels=np.arange(6))
    with pytest.raises(InvalidInput, match="are for images"):
        array_samples(tmp_path / "b.npz", mean=[0.5], std=[0.25])


def test_hidden_states_of_coarse_weights_are_widened_and_broken_ones_refused():
    labels = torch.arange(7) % 5
    found = ask(made().to(torch.bfloat16), IMAGES, labels)
    assert found.hidden[0].dtype == torch.float32
    model = made()
    model[7].register_forward_hook(lambda _, given, out: out / 0)
    model[8].register_forward_hook(lambda _, given, out: torch.zeros_like(out))
    with pytest.raises(InvalidInput, match="hidden states 7 are NaN or infinite"):
        ask(model, IMAGES, labels, layers=["7"])
