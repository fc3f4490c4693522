"""Run by two processes: a small training with an audit, of the kind that is named."""

from __future__ import annotations

import importlib.util
import json
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler
from transformers import DataCollatorForLanguageModeling

from remnant.errors import RemnantError
from remnant.records.typed import Absent

STAGGERED = {
    "plan": "staggered",
    "windows": 2,
    "repeats": (40,),
    "per_repeat": 16,
    "controls": 16,
    "limit": None,
}


def made_of_tiny_parts() -> ModuleType:
    where = Path(__file__).with_name("conftest.py")
    spec = importlib.util.spec_from_file_location("tiny_conftest", where)
    tiny = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tiny)
    return tiny


def loader_of(rows: Any, tokenizer: Any, *, shuffle: bool) -> DataLoader:
    made = [{"input_ids": tokenizer(text)["input_ids"]} for text in rows]
    return DataLoader(
        made,
        batch_size=8,
        sampler=DistributedSampler(made, shuffle=shuffle, seed=0),
        collate_fn=DataCollatorForLanguageModeling(tokenizer, mlm=False),
    )


def in_processes(model: Any, kind: str) -> Any:
    if kind != "fsdp":
        return DistributedDataParallel(model)
    mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (2,))
    for block in model.transformer.h:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def train(audit: Any, model: Any, loader: DataLoader, epochs: int) -> Any:
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    audit.start(model, loader)
    step = 0
    for epoch in range(epochs):
        loader.sampler.set_epoch(epoch)
        for batch in loader:
            model(**batch).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            audit.step(model, step)
    return audit.finish(references=2000)


def plain(kind: str, folder: Path) -> dict[str, Any]:
    """A training from the start on, replicated (ddp) or sharded (fsdp)."""
    tiny = made_of_tiny_parts()
    tokenizer = tiny.tiny_tokenizer()
    audit = tiny.tiny_audit(folder / "audit", tokenizer=tokenizer, every=20)
    loader = loader_of(audit.prepare(tiny.texts()), tokenizer, shuffle=True)
    ended = train(audit, in_processes(tiny.tiny_model(tokenizer), kind), loader, epochs=12)
    result = ended.result
    return {
        "outcome": ended.outcome,
        "method": result.exposure.method,
        "repeats": [canary.repeats for canary in result.exposure.canaries],
        "uses": [canary.uses for canary in result.exposure.canaries],
        "controls_p": result.repeats.levels[0].pooled_pvalue,
    }


def curve_of(ended: Any) -> dict[str, Any]:
    forgetting = ended.result.forgetting
    if isinstance(forgetting, Absent):
        return {"absent": forgetting.reason}
    curves = forgetting.curves
    return {
        "starts": list(curves.starts),
        "ends": list(curves.ends),
        "n": [cohort.n for cohort in curves.cohorts],
        "uses": ended.result.sightings.uses,
        "success": [float(value) for value in curves.success],
    }


def staggered(kind: str, folder: Path) -> dict[str, Any]:
    """A staggered plan in a plain loop of replicated models, read in order."""
    tiny = made_of_tiny_parts()
    tokenizer = tiny.tiny_tokenizer()
    audit = tiny.tiny_audit(folder / "audit", tokenizer=tokenizer, every=10, **STAGGERED)
    loader = loader_of(audit.prepare(tiny.texts(400)), tokenizer, shuffle=False)
    ended = train(audit, in_processes(tiny.tiny_model(tokenizer), "ddp"), loader, epochs=1)
    return curve_of(ended)


def lightning(kind: str, folder: Path) -> dict[str, Any]:
    """A staggered plan in Lightning's own two-process training."""
    import lightning

    tiny = made_of_tiny_parts()
    tokenizer = tiny.tiny_tokenizer()

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = tiny.tiny_model(tokenizer)

        def training_step(self, batch: Any, _: int) -> Any:
            return self.model(**batch).loss

        def train_dataloader(self) -> DataLoader:
            return loader_of(rows, tokenizer, shuffle=False)

        def configure_optimizers(self) -> Any:
            return torch.optim.AdamW(self.parameters(), lr=5e-3)

    audit = tiny.tiny_audit(folder / "audit", tokenizer=tokenizer, **STAGGERED)
    rows = audit.prepare(tiny.texts(400))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = lightning.Trainer(
            max_epochs=1,
            accelerator="cpu",
            devices=2,
            strategy="ddp",
            use_distributed_sampler=False,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=folder / "root",
            callbacks=[audit.lightning_callback(every=10)],
        )
        trainer.fit(Module())
    return curve_of(audit.finish(references=500))


class Broken(Exception):
    """What no part of the audit knows of."""


def failing(kind: str, folder: Path) -> dict[str, Any]:
    """One process fails in each part of an audit; the other must end with its sentence."""
    tiny = made_of_tiny_parts()
    tokenizer, rank = tiny.tiny_tokenizer(), dist.get_rank()

    def fails_in(part: str, fault: Exception) -> Any:
        def fail(*args: Any, **named: Any) -> Any:
            raise fault

        return fail

    def attempt(name: str, *, broken_rank: int, breaks: Any) -> None:
        audit = tiny.tiny_audit(folder / name, tokenizer=tokenizer, every=2)
        loader = loader_of(audit.prepare(tiny.texts()), tokenizer, shuffle=True)
        model = DistributedDataParallel(tiny.tiny_model(tokenizer))
        if rank == broken_rank:
            loader = breaks(audit, loader) or loader
        try:
            train(audit, model, loader, epochs=1)
            said[name] = "nothing"
        except (RemnantError, Broken, OSError) as fault:
            said[name] = str(fault)
        finally:
            if audit._training is not None:
                audit._training.watcher.detach()

    said: dict[str, Any] = {}
    attempt(
        "preflight",
        broken_rank=1,
        breaks=lambda audit, loader: loader_of(tiny.texts(), tokenizer, shuffle=True),
    )
    for name in ("begin", "append", "write", "finish"):
        attempt(
            name,
            broken_rank=0,
            breaks=lambda audit, loader, name=name: setattr(
                audit._state, name, fails_in(name, OSError(f"no space left to {name}"))
            ),
        )
    attempt(
        "measure",
        broken_rank=0,
        breaks=lambda audit, loader: break_the_walk(Broken("the walk broke")),
    )
    return {"rank": rank, "said": said}


def break_the_walk(fault: Exception) -> None:
    """Let the walk of the final measurement fail in this process, from here on."""
    from remnant.integrations.training.finishing import FinalMeasure

    def fail(self: Any, model: Any) -> Any:
        raise fault

    FinalMeasure._by_walk = fail


KINDS = {
    "ddp": plain,
    "fsdp": plain,
    "staggered": staggered,
    "lightning": lightning,
    "failing": failing,
}


def main(kind: str, folder: Path) -> None:
    if kind != "lightning":  # which starts the group itself
        dist.init_process_group("gloo")
    said = KINDS[kind](kind, folder)
    (folder / f"rank-{dist.get_rank()}.json").write_text(json.dumps(said))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
