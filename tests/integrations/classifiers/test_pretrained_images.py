"""Image classifiers in Hugging Face folders."""

from __future__ import annotations

import json

import pytest
import torch

from remnant.errors import InvalidInput
from remnant.integrations.classifiers.pretrained_images import load_image_model
from remnant.integrations.classifiers.probabilities import Probabilities


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    import transformers

    where = tmp_path_factory.mktemp("vit")
    torch.manual_seed(0)
    config = transformers.ViTConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_channels=1,
        intermediate_size=16,
        image_size=16,
        patch_size=8,
        num_labels=3,
    )
    transformers.ViTForImageClassification(config).save_pretrained(where)
    about = {"do_normalize": True, "image_mean": [0.5], "image_std": [0.25]}
    size = {"size": {"height": 16, "width": 16}}
    (where / "preprocessor_config.json").write_text(json.dumps(about | size))
    return where


def test_the_folder_says_shape_and_normalisation(folder):
    import transformers

    found = load_image_model(folder)
    assert (found.shape, found.mean, found.std) == ((1, 16, 16), (0.5,), (0.25,))
    images = torch.rand(4, 1, 16, 16)
    model = transformers.ViTForImageClassification.from_pretrained(folder).eval()
    with torch.no_grad():
        expected = model((images - 0.5) / 0.25).logits.double().softmax(1)
    ask = Probabilities(found.model, mean=found.mean, std=found.std)
    torch.testing.assert_close(ask(images), expected, rtol=1e-5, atol=1e-6)


def test_without_a_word_about_images_the_configuration_is_asked(folder, tmp_path):
    for file in ("config.json", "model.safetensors"):
        (tmp_path / file).write_bytes((folder / file).read_bytes())
    found = load_image_model(tmp_path)
    assert (found.shape, found.mean, found.std) == ((1, 16, 16), None, None)
    (tmp_path / "preprocessor_config.json").write_text("{")
    with pytest.raises(InvalidInput, match="it is not JSON"):
        load_image_model(tmp_path)
