# One line of intent per target. The first call makes .venv (a few minutes, about 3 GB); later calls reuse it.
# PYTHON=python3.12 picks the interpreter (3.11 to 3.13), for example: make lab PYTHON=python3.12
PYTHON ?= python3
BIN := .venv/bin
FIRST_PAGE := /lab/tree/notebooks/00_start_here.ipynb
ROOT_FLAG := $(if $(filter 0,$(shell id -u)),--allow-root)
# No look-up of newer versions or news: nothing leaves the machine. The settings ask no question about news either, and
# keep controls in a saved page.
QUIET_LAB := --LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate --LabApp.news_url=None \
  --LabApp.app_settings_dir="$(CURDIR)/tools/lab_settings"
COMPILE := uv pip compile --no-config --quiet --annotation-style=line --custom-compile-command="make requirements"

.DEFAULT_GOAL := help
.PHONY: help lab test test-browser test-all run notebooks accuracy doctor slides minutes glossary links lint requirements clean setup

help:          ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1|/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-20s %s\n", $$1, $$2}'

lab: setup     ## open JupyterLab on the first notebook (more arguments: LAB_ARGS="--no-browser --port=8901")
	@$(BIN)/jupyter lab --LabApp.default_url=$(FIRST_PAGE) --ip=127.0.0.1 $(QUIET_LAB) $(ROOT_FLAG) $(LAB_ARGS)

test: setup    ## run every test, and every notebook in little time against its stored output (TEST_ARGS="tests/helpers -x")
	@TUTORIAL_HELPERS_SIZE=$${TUTORIAL_HELPERS_SIZE:-quick} $(BIN)/python -m pytest $(TEST_ARGS)

test-browser: setup ## every page in JupyterLab, in a real browser, by mouse and keyboard (about five minutes)
	@TUTORIAL_HELPERS_SIZE=$${TUTORIAL_HELPERS_SIZE:-quick} $(BIN)/python -m pytest -m "full or not full" tests/clients/test_browser.py

test-all: setup ## try every page on each Python, Colab's versions, Binder and with every fault (an hour and a half, 15 GB; ROWS="colab 3.12")
	@$(BIN)/python tools/matrix.py $(if $(AFRESH),--afresh) $(ROWS)

run: setup     ## run the notebooks and build a report of what held here in build/report (ONLY=02; RUN_ARGS="--size quick")
	@$(BIN)/python -m tutorial_helpers report $(ONLY) $(RUN_ARGS)

notebooks: setup ## make the .ipynb files whose text changed (ALL=1: every one; ONLY=02: that one)
	@$(BIN)/python tools/build_notebooks.py $(ONLY) $(if $(ALL),--all)
	@$(BIN)/python tools/picture.py

accuracy: setup ## compare the clock with pyperf and with itself (a quiet machine, about ten minutes)
	@$(BIN)/python -m pip install --quiet pyperf && $(BIN)/python benchmarks/accuracy.py

doctor: setup  ## the day before a course: check this machine, run the first page, say "ready" or what to fix
	@$(BIN)/python -m tutorial_helpers doctor --trial

slides: setup  ## make build/slides, a deck from each notebook that opens without a network (ONLY=02: that one)
	@$(BIN)/python tools/slides.py $(ONLY)

minutes: setup ## write the counted minutes into docs/instructor.md, pages and README (RUN=build/report/notebooks: with times from there)
	@$(BIN)/python tools/minutes.py $(RUN)

glossary: setup ## link each term of docs/glossary.md where a page first uses it
	@$(BIN)/python tools/glossary.py

links: setup   ## write the public address everywhere (REPO=owner/name)
	@$(BIN)/python tools/links.py $(REPO)

lint: setup    ## check the Python code's style
	@$(BIN)/ruff check .

requirements:  ## compile requirements.txt and binder/requirements.txt from pyproject.toml (needs uv; UPGRADE=1: newest)
	@command -v uv >/dev/null || { echo "make requirements needs uv: install it with 'pip install uv' and run it again." >&2; exit 1; }
	@$(COMPILE) $(if $(UPGRADE),--upgrade) --universal --python-version=3.11 \
	  --extra=notebooks --extra=lab --extra=run --extra=test pyproject.toml -o requirements.txt
	@$(COMPILE) $(if $(UPGRADE),--upgrade) --python-platform=x86_64-unknown-linux-gnu --python-version=3.12 \
	  --extra=notebooks --constraint=requirements.txt pyproject.toml -o binder/requirements.txt

clean:         ## remove build/ and caches (the installation stays: rm -r .venv removes it)
	@rm -rf build dist .pytest_cache .ruff_cache
	@find . -path ./.venv -prune -o \( -name __pycache__ -o -name .ipynb_checkpoints \) -type d -print | xargs rm -rf

setup:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null || \
	  { echo "$(PYTHON) is missing here, or too old: name a Python from 3.11 to 3.13, for example PYTHON=python3.12." >&2; exit 1; }
	@$(PYTHON) tools/setup_venv.py $(if $(filter file,$(origin PYTHON)),,--chosen)
