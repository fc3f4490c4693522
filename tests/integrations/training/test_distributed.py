"""Two processes train together, and end with one record or with one sentence."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("two_processes.py")


@pytest.fixture
def in_two_processes(scripts):
    """What each of two processes found, which have the environment that torchrun gives them."""

    def found(kind: str, folder: Path) -> list[dict]:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        together = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2"}
        together |= {"LOCAL_WORLD_SIZE": "2", "CUDA_VISIBLE_DEVICES": ""}
        environments = [
            together | {"RANK": str(rank), "LOCAL_RANK": str(rank), "GROUP_RANK": "0"}
            for rank in range(2)
        ]
        for done in scripts.run_together(environments, SCRIPT, kind, folder):
            assert done.returncode == 0, done.stderr[-3000:]
        return [json.loads((folder / f"rank-{rank}.json").read_text()) for rank in range(2)]

    return found


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_two_processes(tmp_path, kind, in_two_processes):
    ended = in_two_processes(kind, tmp_path)
    assert ended[0] == ended[1]
    assert ended[0]["outcome"] == "FAIL"
    # Each epoch shows every row to one of the two.
    assert ended[0]["uses"] == [12 * repeats for repeats in ended[0]["repeats"]]
    assert ended[0]["controls_p"] > 0.01
    assert (tmp_path / "audit" / "report.html").is_file()


@pytest.mark.parametrize("kind", ["staggered", "lightning"])
def test_a_staggered_plan_in_two_processes(tmp_path, kind, in_two_processes):
    ended = in_two_processes(kind, tmp_path)
    assert ended[0] == ended[1]
    curve = ended[0]
    assert curve["n"] == [8, 8]
    assert curve["uses"] == 16 * 40
    # Each window of the plan is a window of steps, one after the other.
    assert curve["ends"][0] <= curve["starts"][1]
    assert max(curve["success"]) <= 1


def test_an_error_in_one_process_ends_both_with_its_sentence(tmp_path, in_two_processes):
    ended = {said["rank"]: said["said"] for said in in_two_processes("failing", tmp_path)}
    assert "None of the canaries is in the training data" in ended[1]["preflight"]
    assert ended[0]["preflight"] == f"Process 1 stopped the audit: {ended[1]['preflight']}"
    sentences = {
        "begin": "no space left to begin",
        "append": "no space left to append",
        "write": "no space left to write",
        "finish": "no space left to finish",
        "measure": "the walk broke",
    }
    for part, sentence in sentences.items():
        assert ended[0][part] == sentence
        assert ended[1][part] == f"Process 0 stopped the audit: {sentence}"
