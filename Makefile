# The same steps as in the README, for daily work.
PYTHON ?= python3
BIN := .venv/bin
SIBLINGS := $(wildcard packages/*)

.PHONY: setup demo test fast benchmarks lint wheel docs compiled axe proofs check clean

setup: .venv/installed

demo: .venv/installed
	$(BIN)/optmech solve montreal -o montreal.json --picture montreal.png

test: .venv/installed
	$(BIN)/python -m pytest -n auto --dist loadfile

# What takes a moment each, in two minutes: to be run while one works (CONTRIBUTING.md, "Slow tests").
fast: .venv/installed
	$(BIN)/python -m pytest -n auto --dist loadfile -m "not slow"

# Every benchmark in a short form, on stand-ins where the data are not at hand (docs/data.md).
benchmarks: .venv/installed
	$(BIN)/python benchmarks/short.py

lint: .venv/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

wheel: .venv/installed
	$(BIN)/python -m build --wheel
	$(BIN)/check-wheel-contents dist/*.whl

docs: .venv/installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir build/site

# All tests read once, so that of the processes that run them none has to compile what another does.
compiled: .venv/installed
	$(BIN)/python -m pytest --collect-only -q >/dev/null

# The checker of accessibility (MPL-2.0) that tests of pages run where it is.
axe:
	npm install --silent --no-audit --no-fund --no-save --prefix build/node axe-core@4.14.1

# The checker that is itself proved: its proof, the axioms that this rests on, and its verdict on the
# gallery. LARGEST=100 leaves out what takes minutes to solve.
DEBIAN := coq ocaml-nox ocaml-findlib libzarith-ocaml-dev
proofs: .venv/installed
	@ocamlfind query zarith >/dev/null 2>&1 && coqc --version >/dev/null 2>&1 \
		|| $(if $(filter 0,$(shell id -u)),,sudo) apt-get install -y --no-install-recommends $(DEBIAN)
	$(MAKE) -C proofs
	$(BIN)/python proofs/gallery.py $(if $(LARGEST),--largest $(LARGEST))

check: lint wheel docs test

.venv/installed: pyproject.toml $(SIBLINGS:%=%/pyproject.toml)
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q -e '.[dev]' $(SIBLINGS:%=-e %)
	touch $@

clean:
	rm -rf .venv build dist
