# Two commands do everything on a fresh machine: make demo, make test.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
DEMO_INSTALLED := $(VENV)/.installed-demo
DOCS_INSTALLED := $(VENV)/.installed-docs
# make test builds the site too, where Python is new enough for it.
SITE := $(shell $(PYTHON) -c 'import sys; print("docs" * (sys.version_info >= (3, 11)))')
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: install demo docs docs-images test test-gpu lint reference wheel pins browser voices bench factors papers clean

install: $(INSTALLED)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# A complete install has what the demo and the site need: their stamps say so.
$(INSTALLED): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e '.[dev]'
	touch $@ $(DEMO_INSTALLED) $(DOCS_INSTALLED)

$(DEMO_INSTALLED): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e '.[data,dp,scan]'
	touch $@

$(DOCS_INSTALLED): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e '.[docs]'
	touch $@

demo: $(DEMO_INSTALLED)
	$(BIN)/remnant demo --out demo

# Everything that must hold: style, types, the wheel, and the tests, the report in a real browser,
# speech from real voices. Neighbours in a file stay on one worker, which makes what they share once;
# bytecode is kept, since many tests start processes.
test: install lint wheel $(SITE) browser voices
	env -u PYTHONDONTWRITEBYTECODE OMP_NUM_THREADS=1 \
	  $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal

# Where there is a GPU: what only it can show.
test-gpu:
	PYTHONPATH=src python3 -m pytest -m cuda $$(grep -rlE 'mark\.cuda' tests --include='*.py')

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The site, in docs/_build/html: warnings are errors, and every link and anchor leads somewhere.
docs: $(DOCS_INSTALLED)
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "The site needs Python 3.11 or newer: make clean, then make docs PYTHON=python3.11."; exit 1; }
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -d docs/_build/doctrees docs docs/_build/html

# The pictures of the README and of the demo's page, drawn from reports.
docs-images: install browser demo
	$(BIN)/python docs/make_images.py demo

# Write the table of questions times tasks from the code.
reference: install
	$(BIN)/python -m remnant.studies.recipe_form.question_table docs/how-to/which-measure.md

# Build the wheel and install it into a clean environment without extras. Import every public module,
# copy a recipe, and see that commands name the extra that they need before they start.
wheel: install
	rm -rf build dist .venv-wheel
	$(BIN)/python -m build --wheel --no-isolation --outdir dist . > /dev/null
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt dist/*.whl
	cd dist && ../.venv-wheel/bin/python ../tests/import_everything.py
	rm -rf .venv-wheel build

# Pin the newest versions of all that a complete install brings; torch stays as it is pinned.
pins:
	rm -rf .venv-pins
	$(PYTHON) -m venv .venv-pins
	grep '^torch==' constraints.txt > .venv-pins/torch.txt
	.venv-pins/bin/python -m pip install --quiet --disable-pip-version-check -c .venv-pins/torch.txt -e '.[dev]'
	.venv-pins/bin/python tests/write_pins.py > .venv-pins/constraints.txt
	mv .venv-pins/constraints.txt constraints.txt
	rm -rf .venv-pins

# The report's tests need a browser; Debian's is installed where there is none.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null \
	  || command -v google-chrome >/dev/null \
	  || { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; } >/dev/null \
	  || { echo "The report's tests need Chromium or Chrome: install one and run make test again."; exit 1; }

# The tests of speech need voices; Debian's are installed where there are none.
voices:
	@{ command -v flite >/dev/null && command -v espeak-ng >/dev/null; } \
	  || { apt-get update -qq && apt-get install -y -qq --no-install-recommends flite espeak-ng; } >/dev/null \
	  || { echo "The tests of speech need flite and espeak-ng: install both and run make test again."; exit 1; }

bench: install
	$(BIN)/python benchmarks/population.py
	$(BIN)/python benchmarks/privacy.py --members 8
	$(BIN)/python benchmarks/coverage.py
	$(BIN)/python benchmarks/safe_after.py
	$(BIN)/python benchmarks/false_claims.py
	$(BIN)/python benchmarks/hidden.py
	$(BIN)/python benchmarks/forgetting.py
	$(BIN)/python benchmarks/one_run_agreement.py --kind odd
	$(BIN)/python benchmarks/one_run_references.py
	$(BIN)/python benchmarks/theory.py
	$(BIN)/python benchmarks/exposure.py
	$(BIN)/python benchmarks/exposure_statistics.py
	$(BIN)/python benchmarks/prediction.py
	$(BIN)/python benchmarks/overhead.py

# Every factor of the forgetting paper on digits, one report: under four minutes on two cores.
factors: install
	$(BIN)/remnant run recipes/factor-*.toml --out runs/factors

# The papers' experiments, small enough for a laptop; DATA is a folder with the data sets.
papers: factors
	$(BIN)/remnant run recipes/text-*.toml --out runs/text
	$(BIN)/remnant run recipes/digits-poison.toml --out runs/digits-poison
	$(BIN)/remnant run recipes/digits-hidden.toml --out runs/digits-hidden
	$(BIN)/remnant run recipes/stdlib-secret-trials.toml --out runs/stdlib-secret-trials
	$(BIN)/remnant run recipes/secret-*.toml --out runs/secrets
	test -z "$(DATA)" || $(BIN)/remnant run recipes/fashion-mnist-inject.toml --data $(DATA) --out runs/fashion-mnist-inject
	test -z "$(DATA)" || $(BIN)/remnant run recipes/fashion-mnist-one-run.toml --data $(DATA) --out runs/fashion-mnist-one-run

clean:
	rm -rf $(VENV) .venv-wheel .venv-pins build dist demo docs/_build
