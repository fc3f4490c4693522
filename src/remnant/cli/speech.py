"""``remnant speech``: make speech to train and audit recognisers with."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import click

from remnant.cli.help.command import Group
from remnant.cli.options import declared
from remnant.cli.options.naming import naming
from remnant.cli.terminal import resumable
from remnant.progress import ProgressBar

_VOICES = "slt,en-us+f3,rms,awb"


@click.group(cls=Group, short_help="Make synthetic speech from a text file.")
def speech() -> None:
    """Make speech for recipes with the questions speech-forgetting and speech-one-run.

    \b
    Example:
      remnant speech make sentences.txt spoken
    """


@speech.command(short_help="Speak the lines of a text file with flite and espeak-ng.")
@click.argument("sentences", type=click.Path(path_type=Path))
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--voices",
    default=_VOICES,
    show_default=True,
    help="Voices, separated by commas: slt, rms, awb, kal16 (flite); en-us+f1 to f5 and en-us+m1 "
    "to m7 (espeak-ng).",
)
@declared.number("--seed", 0, help="Seed of voices, speed, pitch and noise.")
@declared.as_json
def make(sentences: Path, folder: Path, voices: str, seed: int, as_json: bool) -> None:
    """Speak each line of the text file SENTENCES into FOLDER, as WAV files with a metadata.csv.

    Run the same command again to resume: files that are there are not spoken again. A recipe trains
    on the folder with data.name = "files" and data.path.

    \b
    Example:
      remnant speech make sentences.txt spoken
      remnant speech make sentences.txt spoken --voices slt,rms --seed 1
    """
    from remnant.errors import InvalidInput
    from remnant.studies.shared.wording import counted
    from remnant.tasks.speech_corpus import make_folder

    if seed < 0:
        raise InvalidInput(f"--seed {seed} is less than 0.", hint="Pass a whole number from 0.")
    names = [name.strip() for name in voices.split(",") if name.strip()]
    with resumable(), naming(voices="--voices"), ProgressBar() as bar:
        made = make_folder(sentences, folder, voices=names, seed=seed, progress=bar)
    if as_json:
        click.echo(json.dumps(dataclasses.asdict(made), indent=2))
        return
    click.echo(
        f"{counted(made.utterances, 'utterance')}, {_duration(made.seconds)} of speech; "
        f"{made.spoken} were spoken now."
    )
    click.echo(f"folder: {folder}")


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} seconds" if seconds < 60 else f"{seconds / 60:.1f} minutes"
