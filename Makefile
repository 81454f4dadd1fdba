PY := .venv/bin/python
ARGS ?=
SECONDS ?= 60

.PHONY: install run test lint types imports e2e bench fuzz fairness upgrade restore clean

install: .venv/.installed

# The stamp is as new as what it was made from; a changed lock or pyproject installs again.
.venv/.installed: pyproject.toml constraints.txt
	@test -x $(PY) || python3 -m venv .venv
	@$(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[embedded,dev,fuzz]'
	@touch $@

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

fuzz: install
	$(PY) -m proof fuzz --seconds $(SECONDS) $(ARGS)

fairness: install
	$(PY) -m proof fairness $(ARGS)

upgrade: install
	$(PY) -m proof upgrade $(ARGS)

restore: install
	$(PY) -m proof restore $(ARGS)

clean:
	rm -rf .venv var build *.egg-info
