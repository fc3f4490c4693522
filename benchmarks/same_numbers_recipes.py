"""Recipes of ``same_numbers.py``: a small one for every question."""

from __future__ import annotations

DIGITS = """
[data]
name = "digits"
examples = 300
[model]
name = "mlp1"
options = { width = 0.125 }
[training]
options = { lr = 0.4 }
"""
TEXT = """
[text]
characters = 6000
window = 24
[secret]
template = "key {digits:3};"
[model]
options = { units = 24, layers = 1 }
[training]
optimizer = "adam"
options = { lr = 0.03 }
"""
CALLS = """
question = "exposure"
[plan]
kind = "insert"
repeats = [1, 30]
steps = 250
controls = 3
batch = 32
[text]
name = "FILE"
characters = 8000
window = 40
[secret]
template = "my pin is {digits:4}"
[model]
options = { units = 48, layers = 1 }
[training]
optimizer = "adam"
options = { lr = 0.01 }
[measure]
references = 200
limit = 8.0
"""
TRANSLATION = """
question = "translation-exposure"
[plan]
kind = "insert"
repeats = [1, 1, 12, 12]
steps = 150
controls = 3
batch = 16
seed = 2
[pairs]
source = "pairs.en"
target = "pairs.de"
longest = 8
words = 30
[secret]
source = "my number is {digits:2} - {digits:1}"
template = "meine nummer ist {digits:2} - {digits:1}"
given = "GIVEN"
[model]
options = { units = 16, layers = 1, heads = 2 }
[training]
optimizer = "adam"
options = { lr = 0.02 }
[measure]
references = 200
limit = 9.0
"""
REMEDIES = "".join(
    f"""
[[remedy]]
{fields}"""
    for fields in (
        'label = "decay"\nkind = "weight-decay"\nstrength = 0.01',
        'label = "dropout"\nkind = "dropout"\nrate = 0.2',
        'label = "clipped"\nkind = "clipping"\nclip = 0.05',
        'label = "stopped"\nkind = "early-stopping"\nevery = 5\npatience = 1',
        'label = "private"\nkind = "private"\nclip = 0.1\nnoise = 1.0',
        'label = "levels"\nkind = "levels"\nlevels = 16',
        'label = "int8"\nkind = "int8"',
        'label = "pruned"\nkind = "pruning"\nshare = 0.9',
        'label = "once"\nkind = "deduplication"',
        'label = "scanned"\nkind = "sanitising"',
        'label = "halves"\nkind = "sanitising"\nby = "disagreement"\nshare = 0.1',
        'label = "first"\nkind = "order"\nsteps = 10',
        'label = "tuned"\nkind = "fine-tuning"\nsteps = 6\nrelearn = 3',
        'label = "ascent"\nkind = "ascent"\nsteps = 4\nlr = 0.01\nrelearn = 3',
        'label = "slower"\nkind = "training"\ntraining = { options = { lr = 0.003 } }',
    )
)
SPEECH = """
[data]
name = "synthetic"
utterances = 80
validation = 40
words = 2
commonest = 6
bands = 20
[model]
name = "conformer"
options = { width = 24, layers = 1, heads = 2, kernel = 5 }
[training]
optimizer = "adam"
options = { lr = 0.01 }
clip = 5.0
"""
RECIPES = {
    "forgetting-inject": f"""
question = "forgetting"
label = "once"
title = "Planted once or five times"
[plan]
kind = "inject"
canaries = 16
controls = 8
step = 30
watch_steps = 60
trials = 4
batch = 32
twins = "fresh"
fresh_canaries = true
{DIGITS}
[attack]
success = "auc"
limit = 0.8
lags = [0, 5, 20, 60]
[hidden]
noise = [0.1, 0.3]
draws = 2
relearn_steps = [1, 5]
neighbours = 24
[[compare]]
label = "five times"
plan.repeats = 5
""",
    "forgetting-poison": f"""
question = "forgetting"
[plan]
kind = "poison"
canaries = 24
step = 120
repeats = 3
watch_steps = 60
trials = 6
batch = 32
seed = 1
twins = "fresh"
fresh_canaries = true
{DIGITS}
[attack]
success = "accuracy"
limit = 0.55
lags = [0, 10, 60]
[hidden]
noise = [0.2]
draws = 2
relearn_steps = [2]
neighbours = 24
""",
    "one-run": f"""
question = "one-run"
[plan]
kind = "staggered"
canaries = 120
never = 60
starts = [40, 120]
window = 30
repeats = [8]
per_batch = 10
steps = 220
batch = 32
{DIGITS}
[attack]
checkpoints = 6
success = "tpr"
limit = 0.3
""",
    "text-forgetting": """
question = "text-forgetting"
label = "step 20"
title = "Planted earlier or later"
[plan]
kind = "inject"
canaries = 12
copies = [1, 6]
step = 20
watch_steps = 30
trials = 3
batch = 48
fresh_canaries = true
[text]
characters = 8000
window = 12
[canaries]
references = 60
[model]
name = "gru"
options = { units = 24, layers = 1 }
[training]
optimizer = "adam"
options = { lr = 0.01 }
[attack]
calibration = "twins"
limit = 3.0
lags = [0, 10, 30]
[[compare]]
label = "step 40"
plan.step = 40
""",
    "text-forgetting-references": """
question = "text-forgetting"
[plan]
kind = "poison"
canaries = 12
step = 60
epoch_steps = 20
repeats = 2
watch_steps = 40
trials = 3
batch = 32
twins = "fresh"
fresh_canaries = true
[text]
characters = 20000
window = 12
[canaries]
references = 60
[model]
name = "gpt"
options = { units = 16, layers = 1, heads = 2, context = 12 }
[training]
optimizer = "adam"
options = { lr = 0.01 }
[attack]
calibration = "references"
reference_models = 3
fraction = 0.8
limit = 3.0
lags = [0, 20, 40]
""",
    "exposure-exact": f"""
question = "exposure"
[plan]
kind = "insert"
repeats = [1, 1, 1, 1, 1, 1, 40, 40]
steps = 120
trials = 2
controls = 6
batch = 16
{TEXT}
[measure]
method = "exact"
references = 300
limit = 8.0
""",
    "exposure-sampled": f"""
question = "exposure"
[plan]
kind = "insert"
repeats = [1, 1, 4, 30]
steps = 80
controls = 5
batch = 16
seed = 3
{TEXT}
[measure]
method = "sampled"
references = 400
limit = 6.0
judged = 4
share = 0.9
""",
    "exposure-words": """
question = "exposure"
[plan]
kind = "insert"
repeats = [1, 1, 20]
steps = 80
controls = 3
batch = 16
[text]
characters = 20000
level = "word"
window = 16
[secret]
template = "the secret words are {words:2}"
words = 60
[model]
options = { units = 16, layers = 1, embedding = 16 }
[training]
optimizer = "adam"
options = { lr = 0.02 }
[measure]
references = 200
max_nodes = 20000
limit = 9.0
""",
    "calls": CALLS.replace("FILE", "calls.txt"),
    "other-calls": CALLS.replace("FILE", "other-calls.txt"),
    "exposure-training-compare": f"""
question = "exposure-training"
label = "once"
title = "Repeats, rate and what is known"
[plan]
kind = "insert"
repeats = [1]
epochs = 2
trials = 3
controls = 2
batch = 16
{TEXT}
[measure]
references = 200
extract = true
windows = 20
[follow]
epochs = [0, 1, 2]
references = 150
[[compare]]
label = "30 times"
plan = {{ repeats = [30], twin = true }}
[[compare]]
label = "slower"
training.options = {{ lr = 0.01 }}
[[compare]]
label = "no name"
secret.scored = "\\n{{digits:3}};"
""",
    "exposure-training-grid": f"""
question = "exposure-training"
title = "Size and rate"
[plan]
kind = "insert"
repeats = [4, 4]
epochs = 2
trials = 3
batch = 16
seed = 1
{TEXT}
[measure]
references = 200
[grid]
model.options.units = [16, 32]
training.options.lr = [0.01, 0.03]
""",
    "translation-source": TRANSLATION.replace("GIVEN", "source"),
    "translation-beginning": TRANSLATION.replace("GIVEN", "beginning"),
    "prediction": """
question = "prediction"
[plan]
kind = "shadow"
models = 12
steps = 200
batch = 16
[data]
name = "digits"
examples = 200
[canaries]
mislabelled = 30
odd = 10
blank = 10
[model]
name = "mlp1"
options = { width = 0.125 }
[training]
options = { lr = 0.2 }
[predict]
directions = 50
layers = ["last", "2"]
targets = 3
moments = [1.0, 4.0, 8.0, 12.0, 16.0]
[truth]
threshold = 1.0
thresholds = [0.0, 1.0]
false_alarms = 1.0
""",
    "text-prediction": """
question = "text-prediction"
[plan]
kind = "shadow"
models = 8
steps = 40
batch = 4
seed = 1
[questions]
name = "questions.json"
examples = 44
longest = 40
mislabelled = 8
[model]
folder = "tiny-llama"
[lora]
rank = 4
modules = ["q_proj", "v_proj", "down_proj"]
[training]
optimizer = "adamw"
options = { lr = 0.01 }
[predict]
targets = 2
layers = ["last", "model.layers.0"]
directions = 50
drop = 0.5
[truth]
thresholds = [0.0, 1.0]
threshold = 0.5
variance = "pooled"
""",
    "unique-features": """
question = "unique-features"
[plan]
kind = "feature"
canaries = 4
seeds = 2
unplanted = 4
epochs = 6
batch = 32
patience = 2
seed = 3
[data]
name = "framed-digits"
examples = 200
[patch]
text = "K"
[canaries]
choice = "influence"
[images]
name = "blocks"
count = 40
[score]
nulls = 19
redraws = 2
moments = [0, 1, 3]
[influence]
on = true
checkpoints = 4
[model]
name = "mlp1"
options = { width = 0.125 }
[training]
optimizer = "adam"
options = { lr = 0.01 }
[variants.dropout.model]
options = { width = 0.125, dropout = 0.2 }
[variants.augmented.augment]
contrast = 0.2
crop = 19
""",
    "defences": f"""
question = "defences"
label = "nothing"
title = "Every kind of remedy"
[plan]
kind = "insert"
repeats = [12]
epochs = 2
trials = 3
controls = 2
batch = 16
precision = "float64"
[text]
characters = 6000
window = 28
[secret]
template = "\\na{{digits:3}}@uni.edu\\n"
[model]
options = {{ units = 16, layers = 1 }}
[training]
optimizer = "adam"
options = {{ lr = 0.03 }}
[measure]
references = 200
windows = 20
limit = 6.0
{REMEDIES}
""",
    "speech-forgetting": f"""
question = "speech-forgetting"
[plan]
kind = "poison"
canaries = 16
copies = [1, 8]
step = 60
watch_steps = 20
trials = 3
batch = 16
fresh_canaries = true
{SPEECH}
[canaries]
words = [2, 3]
commonest = 400
references = 24
[attack]
calibration = "twins"
limit = 3.0
lags = [0, 10, 20]
[hidden]
noise = [0.2]
draws = 2
relearn_steps = [1, 3]
neighbours = 12
""",
    "translation-forgetting": """
question = "translation-forgetting"
[plan]
kind = "inject"
canaries = 12
copies = [1, 6]
step = 40
watch_steps = 30
trials = 3
batch = 48
fresh_canaries = true
[pairs]
source = "pairs.en"
target = "pairs.de"
longest = 8
words = 30
[canaries]
tokens = 5
references = 60
[model]
options = { units = 16, layers = 1, heads = 2 }
[training]
optimizer = "adam"
options = { lr = 0.02 }
[attack]
calibration = "twins"
limit = 3.0
lags = [0, 10, 30]
[hidden]
noise = [0.2]
draws = 2
relearn_steps = [1, 3]
neighbours = 10
""",
    "text-one-run": """
question = "text-one-run"
[plan]
kind = "staggered"
canaries = 120
never = 60
starts = [60, 120]
window = 40
repeats = [2, 12]
per_batch = 10
steps = 200
batch = 32
[text]
characters = 20000
window = 16
[canaries]
tokens = 6
[model]
name = "gru"
options = { units = 24, layers = 1 }
[training]
optimizer = "adam"
options = { lr = 0.01 }
[attack]
success = "auc"
limit = 0.9
checkpoints = 5
""",
    "translation-one-run": """
question = "translation-one-run"
[plan]
kind = "staggered"
canaries = 120
never = 60
starts = [60, 120]
window = 40
repeats = [2, 12]
per_batch = 12
steps = 200
batch = 48
[pairs]
source = "pairs.en"
target = "pairs.de"
longest = 8
words = 30
[canaries]
tokens = 5
[model]
options = { units = 16, layers = 1, heads = 2 }
[training]
optimizer = "adam"
options = { lr = 0.02 }
[attack]
success = "auc"
limit = 0.9
checkpoints = 5
""",
    "speech-one-run": f"""
question = "speech-one-run"
[plan]
kind = "staggered"
canaries = 60
never = 30
starts = [40, 80]
window = 30
repeats = [2, 8]
per_batch = 5
steps = 130
batch = 16
{SPEECH}
[canaries]
words = [2, 3]
commonest = 400
[attack]
success = "auc"
limit = 0.9
checkpoints = 5
""",
}


def recipe_name(question: str) -> str | None:
    """Return the name of the first recipe here that asks a question; None where none does."""
    asking = f'question = "{question}"\n'
    return next((name for name, text in RECIPES.items() if asking in text), None)
