PY := .venv/bin/python
ARGS ?=
SECONDS ?= 60
N ?= 10
ORDERS ?= 10000
SEED ?= 1
MINUTES ?= 10

.PHONY: install run test lint types imports e2e bench bench-peers chaos interleavings soak fuzz hostile flood canaries fairness upgrade restore lock sbom clean

install: .venv/.installed

# The stamp is as new as what it was made from; a changed lock or pyproject installs again. Whatever comes from an
# index has a hash in the lock; Graft itself is then put beside it from here.
PIP = $(PY) -m pip install --quiet --disable-pip-version-check
.venv/.installed: pyproject.toml requirements/build.txt requirements/development.txt
	@test -x $(PY) || python3 -m venv .venv
	@$(PIP) --require-hashes -r requirements/build.txt -r requirements/development.txt
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

# Versions stay as they are while they fit pyproject.toml; `make lock ARGS=--upgrade` takes new ones.
UV = .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --no-strip-extras $(ARGS)
lock: install
	$(UV) --extra embedded --extra dev --extra fuzz pyproject.toml -o requirements/development.txt
	$(UV) -c requirements/development.txt pyproject.toml -o requirements/runtime.txt
	$(PY) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' \
	  | $(UV) - -o requirements/build.txt

# What the image holds, as CycloneDX: names, versions, hashes.
sbom: install
	@mkdir -p var
	.venv/bin/cyclonedx-py requirements --output-reproducible --pyproject pyproject.toml --output-file var/sbom.cdx.json requirements/runtime.txt

run: install
	@.venv/bin/graft demo $(ARGS)

test: install
	$(PY) -m pytest -n 2 tests

lint: install
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .

types: install
	.venv/bin/mypy

imports: install
	.venv/bin/lint-imports

e2e: install
	.venv/bin/graft e2e $(ARGS)

bench: install
	$(PY) -m bench $(ARGS)

bench-peers: install
	$(PY) -m bench peers $(ARGS)

fuzz: install
	$(PY) -m proof fuzz --seconds $(SECONDS) $(ARGS)

chaos: install
	$(PY) -m proof chaos --runs $(N) --seed $(SEED) $(ARGS)

interleavings: install
	$(PY) -m proof interleavings --orders $(ORDERS) --seed $(SEED) $(ARGS)

soak: install
	$(PY) -m proof soak --minutes $(MINUTES) $(ARGS)

hostile flood canaries: install
	$(PY) -m proof $@ $(ARGS)

fairness: install
	$(PY) -m proof fairness $(ARGS)

upgrade: install
	$(PY) -m proof upgrade $(ARGS)

restore: install
	$(PY) -m proof restore $(ARGS)

clean:
	rm -rf .venv var build *.egg-info
