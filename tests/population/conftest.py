from __future__ import annotations

import pytest
import torch


@pytest.fixture
def toy():
    """Sixty small images in five classes, and batches for three members."""
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(60, 1, 8, 8, generator=generator)
    labels = torch.randint(0, 5, (60,), generator=generator)
    return inputs, labels
