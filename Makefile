# `make demo` runs the main job on real models; `make test` runs the tests. Both set up .venv first.
PYTHON ?= python3.11
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
AUDIT  := .venv-audit
SITE   := .venv-site
# How many processes share the tests; 0: all of them in one. Tests wait for servers: twice the cores.
WORKERS ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) * 2)))
# Spinning OpenMP threads on a busy machine can be five times slower than one.
export OMP_NUM_THREADS ?= 1
# Compiling every module anew takes a process that a test starts longer than running it.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-uncompiled test-slow check lint format bench wheels browser postgres clients engines pythons sandbox audit sbom pin-images pictures site clean help

help:  ## Show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /\1\t/' | expand -t 12

$(READY): pyproject.toml constraints.txt hatch_build.py $(wildcard collector/*/*.c engine_adapter/*/*.c)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check torch -c constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[collector,dashboard,transformers,dev]' -c constraints.txt
	touch $@

demo: $(READY)  ## Run the main job on real models, ending with a verdict and the dashboard (ARGS=--no-dashboard)
	$(BIN)/draftgate demo $(ARGS)

test: $(READY)  ## Run the tests but the slow ones
	$(BIN)/pytest -m "not slow" -n $(WORKERS) --dist worksteal $(ARGS)

# Every line of the twins that all of tests/collector runs, these run, too.
UNCOMPILED := dialects test_codings.py test_content.py test_contract_*.py test_copy_rows.py test_fuzz_otlp.py \
	test_hostile_*.py test_otlp*.py test_rollup_state.py test_span_*.py test_store_conformance.py test_texts.py \
	test_unpaired.py test_weight.py

test-uncompiled: $(READY)  ## Run the tests of what has a compiled twin without these twins
	PYTHONPATH=$(CURDIR)/tests/support/uncompiled $(BIN)/pytest -m "not slow" -n $(WORKERS) --dist worksteal \
		$(addprefix tests/collector/,$(UNCOMPILED)) tests/engine_adapter/test_transport.py $(ARGS)

# Collecting every test takes a worker longer than running most slow ones.
marked = $(shell grep -rl --include='test_*.py' 'mark\.$(1)\b' tests)

test-slow: $(READY)  ## Run the slow tests, those that need the machine to themselves last
	$(BIN)/pytest -m "slow and not alone" -n logical --dist loadfile $(call marked,slow) $(ARGS)
	$(BIN)/pytest -m "slow and alone" $(call marked,alone) $(ARGS)

check: $(READY) lint  ## Lint, types, import rules, and the docs' completeness
	$(BIN)/pytest tests/test_docs.py

lint: $(READY)  ## ruff, mypy strict, import-linter
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)  ## Format and fix what ruff can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY)  ## Run the benchmarks, each ending with one JSON document
	@for file in benchmarks/[!_]*.py; do \
		module=benchmarks.$$(basename $$file .py); echo "== $$module"; $(BIN)/python -m $$module || exit 1; \
	done

wheels: $(READY)  ## Build into dist/: the compiled wheel, the pure one, the weights' own, and vLLM's plugin
	rm -rf build/wheels dist && mkdir -p build/wheels dist
	$(BIN)/python -m build --wheel --no-isolation --outdir build/wheels
	PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/auditwheel repair --wheel-dir dist build/wheels/*.whl
	DRAFTGATE_PURE=1 $(BIN)/python -m build --wheel --no-isolation --outdir dist
	$(BIN)/python -m build --wheel --no-isolation --outdir dist packages/groundedness_model
	$(BIN)/python -m build --wheel --no-isolation --outdir dist packages/vllm

browser:  ## Install Chromium for the browser tests (Debian and Ubuntu)
	command -v chromium >/dev/null || (apt-get update && apt-get install -y --no-install-recommends chromium)

postgres:  ## Install PostgreSQL for the tests that start one of their own (Debian and Ubuntu)
	ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || (apt-get update && apt-get install -y --no-install-recommends postgresql)

sandbox:  ## Install bubblewrap, in which a model's code runs (Debian and Ubuntu)
	command -v bwrap >/dev/null || (apt-get update && apt-get install -y --no-install-recommends bubblewrap)

clients: $(READY)  ## Install the instrumentations, and the packages of metrics, that the tests use
	$(BIN)/python tests/support/client_environments.py

engines: $(READY)  ## Install the engines that the slow tests start (vLLM, 2 GB, and an older llama.cpp)
	$(BIN)/python tests/support/engine_environments.py

pythons: $(READY)  ## Install Draftgate on the machine's other Pythons and on an emulated ARM machine
	$(BIN)/python tests/support/python_environments.py
	! command -v apt-get >/dev/null || $(BIN)/python tests/support/arm64_machine.py

$(AUDIT)/.ready:
	$(PYTHON) -m venv $(AUDIT)
	$(AUDIT)/bin/python -m pip install --quiet --disable-pip-version-check pip-audit cyclonedx-bom
	touch $@

audit: $(AUDIT)/.ready  ## Ask for known vulnerabilities of the pinned packages; says so if nobody can be asked
	@found=$$($(AUDIT)/bin/pip-audit --disable-pip --no-deps -r constraints.txt 2>&1); code=$$?; \
	skipped=$$(echo "$$found" | grep -c "could not be audited"); \
	echo "$$found" | grep -v "could not be audited" | tail -20; \
	echo "not audited, because the index does not know them: $$skipped of $$(grep -c == constraints.txt)"; \
	if [ $$code = 0 ]; then exit 0; fi; \
	if echo "$$found" | grep -q "known vulnerabilit"; then exit 1; fi; \
	echo "not audited: the index of advisories cannot be reached"

sbom: $(READY) $(AUDIT)/.ready  ## Write the bill of materials of the environment to sbom.json (CycloneDX)
	$(AUDIT)/bin/cyclonedx-py environment --pyproject pyproject.toml $(BIN)/python --output-format JSON --output-file sbom.json

$(SITE)/.ready:
	$(PYTHON) -m venv $(SITE)
	$(SITE)/bin/python -m pip install --quiet --disable-pip-version-check mkdocs-material==9.8.1
	touch $@

pin-images:  ## Pin the deployment's images to the digests that their tags have now
	deploy/pin-images.sh

pictures: $(READY)  ## Take the docs' pictures of the dashboard anew
	$(BIN)/python tests/support/docs_pictures.py

site: $(READY) $(SITE)/.ready  ## Build the docs as pages with a search into build/site
	$(BIN)/python -m deploy.site.reference build/reference
	NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build

clean:  ## Remove the environment and what builds left
	rm -rf $(VENV) $(AUDIT) $(SITE) .venv-clients build dist .mypy_cache .ruff_cache .pytest_cache
