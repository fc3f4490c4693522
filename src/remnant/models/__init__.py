"""The papers' architectures, small and plain."""

from remnant.models.catalogue import CATALOGUE, model_maker
from remnant.models.convolutional import cnn1, cnn2
from remnant.models.dense import logistic, mlp1
from remnant.models.residual import small_resnet, wrn16_4

__all__ = [
    "CATALOGUE",
    "cnn1",
    "cnn2",
    "logistic",
    "mlp1",
    "model_maker",
    "small_resnet",
    "wrn16_4",
]
