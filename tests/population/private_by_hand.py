"""The slow definition of private training: a loop over steps, examples and parameters."""

from __future__ import annotations

import torch
from torch import nn

from remnant.population.private.noise import normal

NAMESAKES = {
    "dp-sgd": torch.optim.SGD,
    "dp-rmsprop": torch.optim.RMSprop,
    "dp-adam": torch.optim.Adam,
}


def train_privately(
    make,
    seed,
    inputs,
    labels,
    rows,
    *,
    optimizer,
    clip,
    noise=0.0,
    expected=None,
    noise_seed=None,
    dtype=torch.float64,
    **options,
):
    """Return the state dict of a model trained on ``rows[steps, batch]``; -1 is an empty place."""
    torch.manual_seed(seed)
    model = make().to(dtype).train()
    rule = NAMESAKES[optimizer](model.parameters(), **options)
    params = list(model.parameters())
    size = sum(p.numel() for p in params)
    for step, batch in enumerate(torch.as_tensor(rows)):
        sums = [torch.zeros_like(p) for p in params]
        for row in batch[batch >= 0]:
            x = inputs[row : row + 1]
            outputs = model(x.to(dtype) if x.is_floating_point() else x)
            target = labels[row : row + 1]
            if target.ndim > 1:
                outputs = outputs.movedim(-1, 1)
            loss = nn.functional.cross_entropy(outputs, target)
            grads = torch.autograd.grad(loss, params, allow_unused=True)
            came = zip(params, grads, strict=True)
            grads = [torch.zeros_like(p) if g is None else g for p, g in came]
            norm = sum(g.square().sum() for g in grads).sqrt()
            for total, grad in zip(sums, grads, strict=True):
                total += grad * min(1.0, clip / float(norm))
        own = torch.tensor([seed if noise_seed is None else noise_seed])
        drawn = normal(own, torch.tensor([step]), size, dtype=dtype)[0]
        noises = drawn.split([p.numel() for p in params])
        for param, total, z in zip(params, sums, noises, strict=True):
            total += noise * clip * z.view_as(param)
            param.grad = total / (len(batch) if expected is None else expected)
        rule.step()
    return {n: t.detach() for n, t in model.state_dict().items()}
