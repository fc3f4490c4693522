"""Recipes with a network of the user's own: what runs its code, is recorded, and is refused."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import time

import numpy as np
import pytest

from remnant.errors import PlanError
from remnant.integrations.workers.device_workers import DeviceWorkers
from remnant.records import Record
from remnant.studies import Execution, read_recipe, run_study
from remnant.studies.jobs.scheduling import Distributed
from remnant.studies.own_code import trusted_file

NETWORKS = """
import os
from pathlib import Path
import torch
from torch import nn

with Path(__file__).with_name("ran.txt").open("a") as log:
    log.write("ran ")

class Net(nn.Module):
    def __init__(self, width=4, side=3):
        super().__init__()
        self.inner = nn.Conv2d(1, width, 3, stride=2)
        self.norm = nn.BatchNorm2d(width)
        self.head = nn.Linear(width * side**2, 10)

    def forward(self, images):
        return self.head(torch.relu(self.norm(self.inner(images))).flatten(1))

def make(width=4, side=3):
    print("made")
    return Net(width, side)

class Constant(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(10))

    def forward(self, images):
        return self.weight * 0 + torch.zeros(len(images), 10)

class Breaking(Net):
    def forward(self, images):
        if float(self.norm.num_batches_tracked) > 12:
            raise KeyError("gone")
        return super().forward(images)

class Tokens(nn.Module):
    def __init__(self, words=7):
        super().__init__()
        self.table, self.head = nn.Embedding(words, 6), nn.LazyLinear(2)

    def forward(self, tokens):
        return self.head(self.table(tokens).mean(1))

class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.reader, self.head = nn.GRU(3, 5, batch_first=True), nn.Linear(5, 2)

    def forward(self, rows):
        return self.head(self.reader(rows)[0][:, -1])

def tokens(rows=200, words=7):
    made = torch.randint(words, (rows, 5), generator=torch.Generator().manual_seed(0))
    return made, (made[:, 0] > words // 2).long()

def sequences():
    made = torch.randn(200, 4, 3, generator=torch.Generator().manual_seed(0))
    return made.numpy(), (made[:, 0, 0] > 0).numpy()

def alike():
    made, labels = tokens()
    made[:] = made[:1]
    made[0] += 1
    return made * 0 + made[1:2] + (torch.arange(200) == 0)[:, None], labels

class Diverging(Net):
    def forward(self, images):
        return super().forward(images) * 10.0 ** self.norm.num_batches_tracked
"""
INJECT = """
question = "forgetting"
[plan]
kind = "inject"
canaries = 12
step = 6
watch_steps = 8
trials = 2
batch = 16
[data]
examples = 100
[model]
maker = "networks:make"
options = { width = 3 }
[attack]
success = "auc"
lags = [0, 4, 8]
"""
ONE_RUN = """
question = "one-run"
[plan]
kind = "staggered"
canaries = 60
never = 30
starts = [10, 20]
window = 10
batch = 16
[data]
examples = 200
[model]
maker = "networks:make"
[attack]
success = "auc"
limit = 0.7
checkpoints = 3
"""

PREDICTION = """
question = "prediction"
[plan]
kind = "shadow"
models = 8
steps = 40
batch = 16
[data]
examples = 120
[canaries]
mislabelled = 10
[model]
maker = "networks:make"
options = { hidden = "norm" }
[predict]
targets = 2
moments = [2.0, 4.0]
directions = 50
"""
FEATURES = """
question = "unique-features"
[plan]
kind = "feature"
canaries = 2
seeds = 2
unplanted = 1
epochs = 3
batch = 32
[data]
name = "framed-digits"
examples = 100
[images]
count = 20
[score]
nulls = 19
[influence]
on = true
checkpoints = 2
[model]
maker = "networks:make"
options = { side = 9, hidden = "norm" }
[training]
optimizer = "adam"
options = { lr = 0.01 }
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    (tmp_path / "networks.py").write_text(NETWORKS)
    (tmp_path / "inject.toml").write_text(INJECT)
    (tmp_path / "poison.toml").write_text(
        INJECT.replace('"inject"', '"poison"')
        + '[[compare]]\nlabel = "wide"\nmodel.options.width = 5\n'
        + '[[compare]]\nlabel = "ours"\nmodel = { name = "logistic", options = {} }\n'
    )
    (tmp_path / "one.toml").write_text(ONE_RUN)
    (tmp_path / "prediction.toml").write_text(PREDICTION)
    (tmp_path / "features.toml").write_text(FEATURES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ran(home):
    log = home / "ran.txt"
    return log.exists() and bool(log.read_text())


@pytest.mark.parametrize("recipe", ["inject", "poison", "one", "prediction", "features"])
def test_a_network_of_ones_own_is_measured_recorded_shown_and_left_alone(command, home, recipe):
    arguments = ("run", f"{recipe}.toml", "--trust", "networks.py", "--out", "run")
    done = command(*arguments, "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["status"] == "complete"  # what the code prints is not in it
    assert "made" in done.err
    digest = hashlib.sha256((home / "networks.py").read_bytes()).hexdigest()
    record = Record.open(home / "run")
    assert record.plan["model"]["sha256"] == {"networks": digest}
    assert record.plan["model"]["maker"] == "networks:make"
    assert record.provenance["inputs"]["--trust networks.py"] == digest
    (home / "ran.txt").unlink()
    page = (home / "run" / "report.html").read_text()
    assert digest in page
    assert "networks:make" in page
    for shown in (("show", "run"), ("report", "run"), ("runs", "."), ("show", "run", "--json")):
        done = command(*shown)
        assert done.code == 0, done.err
    assert not ran(home)
    again = command(*arguments)
    assert again.code == 0, again.err
    assert Record.open(home / "run").attempts() == record.attempts()


@pytest.mark.parametrize("recipe", ["inject", "one", "prediction"])
@pytest.mark.parametrize(("model", "data"), [("Tokens", "tokens"), ("Reader", "sequences")])
def test_tensors_of_ones_own_go_through_a_network_of_ones_own(command, home, recipe, model, data):
    text = (home / f"{recipe}.toml").read_text().replace("options = { width = 3 }\n", "")
    text = text.replace("networks:make", f"networks:{model}")
    text = text.replace('"norm"', '"table"' if model == "Tokens" else '"reader"')
    text = re.sub(r"examples = \d+", f'maker = "networks:{data}"', text)
    (home / "own.toml").write_text(text)
    assert command("run", "own.toml").code == 2
    assert not ran(home)
    trusted = ("--trust", "networks.py", "--out", "run")
    assert command("run", "own.toml", "--dry-run", *trusted[:2]).code == 0
    done = command("run", "own.toml", *trusted)
    assert done.code == 0, done.err
    record = Record.open(home / "run")
    digest = hashlib.sha256((home / "networks.py").read_bytes()).hexdigest()
    assert record.plan["data"]["sha256"] == record.plan["model"]["sha256"] == {"networks": digest}
    assert record.provenance["data_files"] == {f"networks:{data}": digest}
    assert command("run", "own.toml", *trusted).code == 0
    (home / "networks.py").write_text(NETWORKS + "\n")
    assert "has changed since this run began" in command("run", "own.toml", *trusted).err


def test_features_are_given_to_a_network_of_ones_own_as_rows(command, home):
    rng = np.random.default_rng(0)
    np.savez(home / "rows.npz", inputs=rng.normal(size=(200, 6)), labels=np.arange(200) % 3)
    (home / "flat.py").write_text(
        "from torch import nn\n\ndef make():\n    return nn.Linear(6, 3)\n"
    )
    text = INJECT.replace("networks:make", "flat:make").replace("options = { width = 3 }\n", "")
    text = text.replace("examples = 100", 'name = "files"\npath = "rows.npz"')
    (home / "rows.toml").write_text(text)
    done = command("run", "rows.toml", "--trust", "flat.py", "--out", "rows")
    assert done.code == 0, done.err
    odd = text.replace("[model]", '[canaries]\nkind = "odd"\n[model]')
    (home / "odd.toml").write_text(odd)
    done = command("run", "odd.toml", "--trust", "flat.py", "--out", "odd")
    assert "odd canaries are images, and the data are rows of features" in done.err


def test_tensors_that_are_all_alike_never_pass(command, home):
    text = INJECT.replace("networks:make", "networks:Tokens").replace("options = { width = 3 }", "")
    text = text.replace("examples = 100", 'maker = "networks:alike"')
    (home / "alike.toml").write_text(text)
    arguments = ("run", "alike.toml", "--trust", "networks.py", "--out", "run", "--gate")
    done = command(*arguments)
    assert done.code == 2
    assert "all canaries of a trial have near-copies" in done.err


def test_variants_have_networks_of_their_own(home):
    study = read_recipe(home / "poison.toml")
    assert [v.study.model.title for v in study.compare] == ["networks:make", "logistic"]
    assert [v.study.model.options for v in study.compare] == [{"width": 5}, {}]
    assert study.compare[1].study.model.maker is None


def test_without_trust_nothing_runs_and_nothing_is_written(command, home):
    done = command("run", "inject.toml")
    assert done.code == 2
    assert done.err.startswith(
        "remnant: model.maker='networks:make' names code, which runs only from a file that you "
        "trust. Read the code, then add --trust networks.py."
    )
    assert not ran(home)
    assert not (home / "runs").exists()


def test_a_dry_run_without_trust_checks_the_recipe_alone(command, home):
    done = command("run", "inject.toml", "--dry-run")
    assert done.code == 0, done.err
    assert "Nothing was timed" in done.out
    assert not ran(home)
    found = json.loads(command("run", "inject.toml", "--dry-run", "--json").out)
    assert found == {"timed": False, "needs_trust": {"model.maker": "networks:make"}}
    timed = command("run", "inject.toml", "--dry-run", "--trust", "networks.py")
    assert timed.out.startswith("members  6\nsteps    15\n")
    assert not (home / "runs").exists()
    (home / "inject.toml").write_text(INJECT.replace("trials = 2", "trials = 0"))
    assert command("run", "inject.toml", "--dry-run").code == 2


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_another_file_is_refused(command, home, more):
    (home / "other").mkdir()
    (home / "other" / "networks.py").write_text(NETWORKS)
    done = command("run", "inject.toml", "--trust", "other/networks.py", *more)
    assert done.code == 2
    assert "is read from networks.py, and you trust other/networks.py" in done.err
    both = ("--trust", "networks.py", "--trust", "other/networks.py")
    done = command("run", "inject.toml", *both, *more)
    assert done.code == 2
    assert "no function that a recipe names is read from it" in done.err
    assert not ran(home)
    assert not (home / "other" / "ran.txt").exists()


def test_trust_that_no_recipe_needs_is_refused(command, home):
    (home / "plain.toml").write_text(INJECT.replace('maker = "networks:make"', 'name = "mlp1"'))
    done = command("run", "plain.toml", "--trust", "networks.py")
    assert done.code == 2
    assert "no function that a recipe names is read from it" in done.err


def test_no_other_command_runs_the_code_of_a_recipe(command, home):
    for arguments in (
        ("recipe", "list"),
        ("recipe", "schema"),
        ("recipe", "new", "forgetting"),
        ("runs", "."),
    ):
        assert command(*arguments).code == 0
    assert not ran(home)


def test_a_changed_file_does_not_resume_and_its_recipe_is_pinned(command, home):
    trusted = ("--trust", "networks.py", "--out", "run")
    assert command("run", "inject.toml", *trusted).code == 0
    before = Record.open(home / "run").plan["model"]["sha256"]["networks"]
    (home / "networks.py").write_text(NETWORKS + "\n# changed\n")
    done = command("run", "inject.toml", *trusted)
    assert done.code == 2
    assert "The file of networks has changed since this run began" in done.err
    pinned = INJECT.replace("[attack]", f'sha256 = {{ networks = "{before}" }}\n[attack]')
    (home / "pinned.toml").write_text(pinned)
    done = command("run", "pinned.toml", "--trust", "networks.py", "--out", "other")
    assert done.code == 2
    assert "is not the file that model.sha256 names" in done.err
    (home / "networks.py").write_text(NETWORKS)
    assert command("run", "pinned.toml", *trusted).code == 0  # the run that was there


@pytest.mark.parametrize(
    ("maker", "words"),
    [
        ("networks:nothing", "networks.py has no function nothing"),
        ("networks:Net.make", "not of the form package.module:function"),
        ("networks:os", "networks.py has no function os"),
        ("nowhere:make", "is in no file that you trust"),
        ("networks:Breaking", r"networks.py, line \d+, in forward: KeyError: 'gone'"),
        ("networks:Diverging", "logits are not finite|not finite"),
    ],
)
def test_faults_of_the_code_are_a_sentence_and_leave_nothing(command, home, maker, words):
    (home / "bad.toml").write_text(INJECT.replace("networks:make", maker))
    done = command("run", "bad.toml", "--trust", "networks.py", "--out", "bad")
    assert done.code == 2, done.err
    assert re.search(words, done.err)
    assert "Traceback" not in done.err
    assert not (home / "bad").exists()


def test_a_name_and_a_function_together_are_refused_and_so_is_no_function(home):
    for model, words in (
        ('name = "cnn1"\nmaker = "a:b"', "model.name='cnn1' and model.maker='a:b' are both given"),
        ('name = "own"', 'model.maker is needed with model.name = "own"'),
        ('name = "networks:make"', "is a function and no architecture. Write it as model.maker."),
        ('maker = "a.b"', "not of the form package.module:function"),
        ("maker = 3", "model.maker=3 is not of the form package.module:function"),
    ):
        text = INJECT.replace('maker = "networks:make"\noptions = { width = 3 }', model)
        (home / "bad.toml").write_text(text)
        with pytest.raises(PlanError) as caught:
            read_recipe(home / "bad.toml")
        assert words in str(caught.value)


@pytest.mark.parametrize(
    ("hidden", "words"),
    [
        ('"trunk"', "model.options.hidden: the model has no layer 'trunk'. It has, among others: "),
        ("64", "model.options.hidden=64 is not the name of a submodule"),
        ('""', "model.options.hidden='' is not the name of a submodule"),
    ],
)
@pytest.mark.parametrize("recipe", ["inject", "prediction", "features"])
def test_a_hidden_layer_that_is_not_there_is_refused(command, home, recipe, hidden, words):
    text = (home / f"{recipe}.toml").read_text().replace('"norm"', hidden)
    text = text.replace("options = { width = 3 }", f"options = {{ width = 3, hidden = {hidden} }}")
    (home / "bad.toml").write_text(text)
    done = command("run", "bad.toml", "--trust", "networks.py", "--out", "bad")
    assert done.code == 2
    assert done.err.replace("made\n", "").startswith(f"remnant: {words}")
    assert not (home / "bad").exists()


def test_prediction_needs_a_hidden_layer_and_features_do_without(command, home):
    text = PREDICTION.replace('options = { hidden = "norm" }\n', "")
    (home / "prediction.toml").write_text(text)
    for more in ((), ("--dry-run",)):
        done = command("run", "prediction.toml", "--trust", "networks.py", *more)
        assert done.code == 2
        assert done.err == (
            "remnant: model.maker='networks:make': prediction reads hidden "
            "states, and the recipe does not say which layer gives them. Name a submodule of the "
            'network, such as options = { hidden = "body.norm" }.\n'
        )
    assert not ran(home)
    (home / "features.toml").write_text(FEATURES.replace(', hidden = "norm"', ""))
    done = command("run", "features.toml", "--trust", "networks.py", "--out", "run")
    assert done.code == 0, done.err
    record = Record.open(home / "run")
    assert record.result("features")["variants"][0]["activations"] is None
    assert "plain.unique" in record.array_names()
    assert "plain.influence_after" in record.array_names()


def test_tensors_have_no_place_for_a_patch(command, home):
    text = FEATURES.replace('name = "framed-digits"', 'maker = "networks:sequences"')
    text = re.sub("examples = .*", "", text).replace("networks:make", "networks:Reader")
    (home / "features.toml").write_text(re.sub("options = { side.*", "", text))
    done = command("run", "features.toml", "--trust", "networks.py")
    assert done.code == 2
    assert "A patch is stamped on images, and networks:sequences has tensors" in done.err


@pytest.mark.parametrize("recipe", ["inject", "one"])
def test_a_network_that_learns_nothing_never_passes(command, home, recipe):
    text = (home / f"{recipe}.toml").read_text().replace("options = { width = 3 }", "")
    (home / "constant.toml").write_text(text.replace("networks:make", "networks:Constant"))
    arguments = ("run", "constant.toml", "--trust", "networks.py", "--out", "run", "--gate")
    done = command(*arguments, "--json")
    assert done.code in (1, 3), done.err
    outcome = json.loads(done.out)["results"]["verdict"]
    assert outcome["outcome"] != "PASS"


@pytest.mark.parametrize("recipe", ["inject", "features"])
def test_workers_get_the_bytes_of_the_file_and_give_the_same_arrays(home, recipe):
    file = trusted_file(home / "networks.py")
    study = read_recipe(home / f"{recipe}.toml")
    run_study(study, home / "here", Execution(trusted=(file,)))
    os.chdir(home / "here")  # where no networks.py is
    with Distributed(DeviceWorkers(["cpu"], threads=1), say=print) as executor:
        execution = Execution(trusted=(file,), recipe_folder=home, executor=executor)
        run_study(study, home / "there", execution)
    here, there = (Record.open(home / name) for name in ("here", "there"))
    for name in here.array_names():
        assert here.array(name).tobytes() == there.array(name).tobytes()


def test_a_study_run_without_its_file_says_so(home):
    with pytest.raises(PlanError, match="runs only from a file that you trust"):
        run_study(read_recipe(home / "inject.toml"), home / "run", Execution())
    assert not (home / "run").exists()


@pytest.mark.parametrize("recipe", ["inject", "one", "prediction", "features"])
def test_a_killed_run_goes_on_to_the_same_arrays(command, home, recipe):
    text = (home / f"{recipe}.toml").read_text()
    text = text.replace("watch_steps = 8", "watch_steps = 300").replace(
        "window = 10\n", "window = 10\nsteps = 600\n"
    )
    text = text.replace("steps = 40", "steps = 80").replace("epochs = 3", "epochs = 12")
    (home / "long.toml").write_text(text)
    arguments = ["run", "long.toml", "--trust", "networks.py", "--threads", "1"]
    more = ["--checkpoint-seconds", "0", "--out", "killed"]
    code = "from remnant.cli.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments, *more],
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 300
    while not list((home / "killed").glob("checkpoint*.safetensors")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert Record.open(home / "killed").status == "running"
    assert command(*arguments, "--out", "whole").code == 0
    assert command(*arguments, "--out", "killed").code == 0
    whole, killed = (Record.open(home / name) for name in ("whole", "killed"))
    assert len(killed.attempts()) == 2
    assert whole.array_names() == killed.array_names()
    for name in whole.array_names():
        assert whole.array(name).tobytes() == killed.array(name).tobytes()
    assert whole.execution == killed.execution
