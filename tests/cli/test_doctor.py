"""``remnant doctor``: what is there, what is missing, and the exit code."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, version

import torch

import remnant
from remnant.cli import doctor


def test_it_names_versions_extras_and_devices(command):
    done = command("doctor", "--json")
    found = json.loads(done.out)
    assert done.code == 0
    assert found["ready"] is True
    assert found["faults"] == []
    assert found["versions"]["remnant"] == remnant.__version__
    assert found["versions"]["torch"] == version("torch")
    assert found["device"] == ("cuda" if torch.cuda.is_available() else "cpu")
    assert found["threads"] == torch.get_num_threads()
    names = {extra["name"] for extra in found["extras"]}
    assert {"data", "hf", "peft", "scan"} <= names
    assert "dev" not in names


def test_one_thread_is_not_printed_in_the_plural(command, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    assert ", 1 thread\n" in command("doctor").out


def test_it_prints_the_command_of_a_missing_extra(command, monkeypatch):
    def without(package):
        if package in ("phonenumbers", "transformers"):
            raise PackageNotFoundError(package)
        return "0.0.1" if package == "pillow" else version(package)

    monkeypatch.setattr(doctor, "version", without)
    done = command("doctor")
    lines = [line.strip() for line in done.out.splitlines()]
    assert done.code == 0
    (scan,) = (line for line in lines if line.startswith("scan "))
    assert "missing (phonenumbers>=9.0): pip install " in scan
    (data,) = (line for line in lines if line.startswith("data "))
    assert "missing (pillow>=10.0): pip install " in data, "one that is too old is missing"
    (peft,) = (line for line in lines if line.startswith("peft "))
    assert "transformers" in peft, "what it takes from another extra counts"
    assert lines[-1] == "Everything that Remnant requires is there."


def test_something_required_that_cannot_be_loaded_is_exit_code_1(command, monkeypatch):
    def broken(name):
        if name == "scipy":
            raise ImportError("libopenblas.so is not there\nand more")

    monkeypatch.setattr(doctor, "import_module", broken)
    done = command("doctor")
    assert done.code == 1
    assert done.out.splitlines()[-1] == "scipy cannot be loaded: libopenblas.so is not there."
    assert json.loads(command("doctor", "--json").out)["ready"] is False


def test_a_folder_that_cannot_be_written_is_said(command, monkeypatch):
    monkeypatch.setattr(doctor, "_is_writable", lambda folder: False)
    done = command("doctor")
    assert done.code == 1
    assert "no; name another with --out" in done.out
    assert done.out.splitlines()[-1].endswith("the temporary folder, cannot be written.")
