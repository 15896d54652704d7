# Everything a developer types. Needs Python 3.11 or newer; `lint` also needs node and npm for buf.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# What running needs and nothing else, for whoever only runs it.
RUN_VENV := .venv-run
RUN_BIN := $(RUN_VENV)/bin
RUN_READY := $(RUN_VENV)/.ready
BUF := node_modules/.bin/buf
HERMES := tests/hosts/hermes/.venv
NODE_HOSTS := tests/hosts/node/node_modules/.package-lock.json
AI_SDK_7 := tests/hosts/node7/node_modules/.package-lock.json
FRAMEWORKS := tests/hosts/.venv
FRAMEWORKS_READY := $(FRAMEWORKS)/.ready
OPENCLAW := tests/hosts/openclaw/node_modules/.package-lock.json
CODEX := tests/codex/node_modules/.package-lock.json
CLAUDE_CODE := tests/hosts/claude-code/node_modules/.package-lock.json
RELEASED := proto/released/v1.binpb
# The plugins that buf runs, pinned here (Go) and in clients/typescript/package-lock.json.
TOOLS := .tools/bin
GRPCURL := $(TOOLS)/grpcurl
ACTIONLINT := $(TOOLS)/actionlint
HELM := $(TOOLS)/helm
KUBERNETES := .tools/kubernetes/bin/kubernetes-validate
GO_PLUGINS := $(TOOLS)/protoc-gen-go $(TOOLS)/protoc-gen-go-grpc
# The load, and ghz's runner with what ghz cannot do alone.
GHZ := $(TOOLS)/ghz
DELTAS := $(TOOLS)/ghz-deltas
TYPESCRIPT := clients/typescript/node_modules/.package-lock.json
comma := ,
space := $(subst ,, )
# The clients that can be built here: each needs its language's own tool.
LANGUAGES := python python-asyncio $(if $(shell command -v go),go) $(if $(shell command -v npm),typescript) $(if $(shell command -v mvn),java) $(if $(shell command -v cargo),rust)
CLIENTS := $(subst $(space),$(comma),$(strip $(LANGUAGES)))
BUILDS := $(addprefix client-,$(filter-out python%,$(LANGUAGES)))
PROJECTS := $(wildcard pyproject.toml generated/python/pyproject.toml clients/python/pyproject.toml)
# What stands between a host and the service. Running the service needs none of it.
INTEGRATIONS := $(wildcard integrations/*/pyproject.toml)
# How often `make test-clients` kills the server under each client, at three to five minutes for twenty.
KILLS ?= 20

.DEFAULT_GOAL := help
# Whatever has a description below is no file.
.PHONY: $(shell awk -F : '/^[a-z-]+:.*\#\# / { print $$1 }' $(firstword $(MAKEFILE_LIST)))

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## Make .venv from the locked requirements and install the project editable

PIP := -m pip --disable-pip-version-check
PIP_INSTALL := $(PIP) install --quiet
# A lock names all that it needs: resolving it again finds what came out since (pip before 24 takes the newest of a name with extras).
PIP_LOCKED := $(PIP_INSTALL) --require-hashes --no-deps
OURS := $(foreach project,$(PROJECTS),-e $(abspath $(dir $(project))))
BETWEEN := $(foreach project,$(INTEGRATIONS),-e $(abspath $(dir $(project))))

define venv
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: put it on PATH or say make PYTHON=/path/to/python3.11"; exit 1; }
	@"$(PYTHON)" -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "$(PYTHON) is too old or lacks ensurepip: Python 3.11 or newer with venv is needed (Debian: python3-venv)"; exit 1; }
	test -x $(@D)/bin/python || "$(PYTHON)" -m venv $(@D)
endef

$(READY): requirements-dev.lock $(PROJECTS) $(INTEGRATIONS)
	$(venv)
	$(BIN)/python $(PIP_LOCKED) -r requirements-dev.lock
	$(BIN)/python $(PIP_INSTALL) --no-deps --no-build-isolation $(OURS) $(BETWEEN)
	touch $@

# Our own distributions are built with what deploy/build.lock pins, which is not needed afterwards.
$(RUN_READY): BUILDING = $(abspath $(RUN_VENV)/building)
$(RUN_READY): requirements.lock deploy/build.lock $(PROJECTS)
	$(venv)
	$(RUN_BIN)/python $(PIP_LOCKED) -r requirements.lock
	$(RUN_BIN)/python $(PIP_LOCKED) --target $(BUILDING) -r deploy/build.lock
	PYTHONPATH=$(BUILDING) $(RUN_BIN)/python $(PIP_INSTALL) --no-deps --no-build-isolation $(OURS)
	rm -rf $(BUILDING)
	$(RUN_BIN)/python $(PIP) uninstall --quiet --yes setuptools
	touch $@

hooks: setup $(BUF) ## Check each commit of this clone before it is made
	$(BIN)/pre-commit install

run: $(RUN_READY) ## Serve on 127.0.0.1:50051 with SQLite in ./var/contextengine.db
	mkdir -p var
	$(RUN_BIN)/contextengine serve --address 127.0.0.1:50051

# Hosts in front of servers of their own, and examples in environments of their own: `make test-frameworks`
# plays them with all hosts there are.
SLOW_HOSTS := tests/hosts/test_table.py tests/hosts/test_offline_examples.py

# Servers that are killed, paused and upgraded over one PostgreSQL: `make test-postgres` runs them.
REPLICAS := tests/integration/replicas

# Whole sessions replayed step by step, sessions of every size, and conversations through the proxy.
REPLAYED := nothing_comes_back spans_of_summaries pruned dag_replays pipeline_replays layered_replays compressor_replays
LONG_TESTS := tests/integration/replay tests/integration/load $(wildcard tests/hosts/test_proxy*.py) \
	tests/acceptance/test_memory.py $(REPLAYED:%=tests/properties/test_%.py)

# One more than there are cores: tests that kill, restart and wait leave theirs idle.
WORKERS ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))

test: setup $(if $(shell command -v go),$(GRPCURL)) ## Run every quick test, on as many cores as there are
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal $(addprefix --ignore=,$(SLOW_HOSTS) $(REPLICAS) $(LONG_TESTS))

test-long: setup ## Replay whole sessions, weigh sessions of every size, and talk through the proxy
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal $(LONG_TESTS)

native: setup ## Build the native transport into .venv (needs Rust)
	cd native && CARGO_TARGET_DIR=$(abspath build/native) VIRTUAL_ENV=$(abspath $(VENV)) $(abspath $(BIN))/maturin develop --release --quiet

# What the native transport is held to; .ci/run takes the part that is about calls.
NATIVE_TESTS ?= tests/integration tests/acceptance

test-native: native ## Hold the native transport to what grpcio is held to
	cd native && cargo fmt --check && CARGO_TARGET_DIR=$(abspath build/native) cargo clippy --quiet --tests -- -D warnings && CARGO_TARGET_DIR=$(abspath build/native) PYO3_PYTHON=$(abspath $(BIN)/python) cargo test --quiet
	CONTEXTENGINE_TRANSPORT=native $(BIN)/python -m pytest -q -n auto --dist worksteal $(NATIVE_TESTS)

test-native-clients: native $(BUILDS) ## Hold the native transport to what every client expects of a server
	CONTEXTENGINE_TRANSPORT=native CONTEXTENGINE_CLIENTS=$(CLIENTS) CONTEXTENGINE_KILLS=$(KILLS) $(BIN)/python -m pytest -q tests/clients

# What is run on PostgreSQL; CI takes a part of it.
POSTGRES_TESTS ?= tests/contract/test_stores.py tests/unit/store/postgres tests/integration $(wildcard tests/acceptance/test_*.py)

test-postgres: setup ## Run the stores' suite, the integration and the acceptance tests on a PostgreSQL of their own (Debian: postgresql)
	CONTEXTENGINE_POSTGRES=yes $(BIN)/python -m pytest -q -n auto --dist worksteal $(POSTGRES_TESTS)

test-clients: setup $(BUILDS) $(if $(shell command -v npm),openclaw ai-sdk) ## Hold every client that can be built here to one behaviour
	@echo "clients that can be built here: $(CLIENTS)"
	CONTEXTENGINE_CLIENTS=$(CLIENTS) CONTEXTENGINE_KILLS=$(KILLS) $(BIN)/python -m pytest -q -s tests/clients

.PHONY: $(BUILDS)
client-go:
	cd clients/go && go vet . ./cmd/... && go build -o ../../build/clients/ ./cmd/...
	cd clients/go/examples && go vet ./... && go build -o ../../../build/clients/ ./...

client-typescript: $(TYPESCRIPT)
	cd clients/typescript && npm run --silent build

# The client that the plugin needs is the one beside it, with what that one needs. Copied: OpenClaw installs no plugin that
# has links to what is outside of its folder.
openclaw: client-typescript ## Build the plugin for OpenClaw in integrations/openclaw
	rm -rf integrations/openclaw/node_modules
	mkdir -p integrations/openclaw/node_modules/@contextengine/client
	cp -R clients/typescript/package.json clients/typescript/dist integrations/openclaw/node_modules/@contextengine/client
	cd clients/typescript && npm ls --omit=dev --all --parseable | sed -n 's|.*/\(node_modules/.*\)|\1|p' | while read -r one; do \
	  mkdir -p ../../integrations/openclaw/$$one && cp -R $$one/. ../../integrations/openclaw/$$one || exit 1; \
	done
	cd integrations/openclaw && npm run --silent build

ai-sdk: client-typescript $(NODE_HOSTS) ## Build the package for the AI SDK of Vercel in integrations/ai-sdk
	mkdir -p integrations/ai-sdk/node_modules/@contextengine
	ln -sfn ../../../../clients/typescript integrations/ai-sdk/node_modules/@contextengine/client
	ln -sfn ../../../clients/typescript/node_modules/@bufbuild integrations/ai-sdk/node_modules/@bufbuild
	ln -sfn ../../../tests/hosts/node/node_modules/ai integrations/ai-sdk/node_modules/ai
	cd integrations/ai-sdk && npm run --silent build

client-java:
	cd clients/java && rm -rf target/lib && mvn -B -q package -Dmaven.javadoc.skip=true

client-rust: export CARGO_TARGET_DIR := $(abspath build/rust)
client-rust:
	cd clients/rust && cargo fmt --check && cargo clippy --quiet --all-targets -- -D warnings && cargo test --quiet --doc && cargo build --quiet --examples

client-docs: setup $(BUILDS) ## Write the clients' API pages into build/docs
	$(BIN)/pdoc -o build/docs/python contextengine '!contextengine.fields'
	$(if $(findstring go,$(CLIENTS)),mkdir -p build/docs && cd clients/go && go doc -all . > ../../build/docs/go.txt)
	$(if $(findstring typescript,$(CLIENTS)),cd clients/typescript && npm run --silent docs)
	$(if $(findstring java,$(CLIENTS)),mkdir -p build/docs/java && (cd clients/java && mvn -B -q package) && cp -r clients/java/target/reports/apidocs/. build/docs/java)
	$(if $(findstring rust,$(CLIENTS)),cd clients/rust && cargo doc --quiet --no-deps --target-dir ../../build/rust && mkdir -p ../../build/docs/rust && cp -r ../../build/rust/doc/. ../../build/docs/rust)

packages: THIS = $(shell cat VERSION)
packages: setup $(BUILDS) $(if $(shell command -v npm),openclaw ai-sdk) ## Build what is published into build/packages
	rm -rf build/packages
	for project in $(dir $(PROJECTS) $(INTEGRATIONS)); do \
	  $(BIN)/uv build --quiet --no-build-isolation --python $(BIN)/python --out-dir build/packages $$project || exit 1; \
	done
	$(if $(findstring typescript,$(CLIENTS)),for folder in clients/typescript integrations/openclaw integrations/ai-sdk; do (cd $$folder && npm pack --silent --pack-destination ../../build/packages) || exit 1; done)
	$(if $(findstring java,$(CLIENTS)),(cd clients/java && mvn -B -q package) && cp clients/java/target/contextengine-client-$(THIS)*.jar build/packages && cp clients/java/pom.xml build/packages/contextengine-client-$(THIS).pom)
	$(if $(findstring rust,$(CLIENTS)),cd clients/rust && cargo package --quiet --allow-dirty --no-verify --target-dir ../../build/rust && cp ../../build/rust/package/contextengine-$(THIS).crate ../../build/packages)

release: setup ## Set a version in all packages, run what CI runs, commit and tag: make release VERSION=0.2.0
	@test -n "$(VERSION)" || { echo "say which version: make release VERSION=X.Y.Z, with DRY_RUN=1 to see what it would do"; exit 1; }
	$(BIN)/python scripts/release.py $(VERSION) $(if $(DRY_RUN),--dry-run)

trace-demo: setup $(TOOLS)/jaeger $(BUILDS) ## Show in Jaeger that a turn is one trace; KEEP=60 leaves Jaeger there for a minute
	CONTEXTENGINE_CLIENTS=$(CLIENTS) $(BIN)/python -m tests.tracing.demo $(if $(KEEP),--keep $(KEEP))

test-host-dependencies: setup ## See that no agent framework moves for the Python client (asks the package index)
	$(BIN)/python scripts/fits_hosts.py

test-hermes: setup $(HERMES) ## Drive the real Hermes, installed into tests/hosts/hermes, against a mock on loopback
	CONTEXTENGINE_HERMES=$(abspath $(HERMES)/bin/python) $(BIN)/python -m pytest -q -s tests/hosts/test_hermes_agent.py tests/hosts/test_hermes_rows.py

test-openclaw: setup openclaw $(OPENCLAW) ## Drive the real OpenClaw, installed into tests/hosts/openclaw, against a mock on loopback
	CONTEXTENGINE_OPENCLAW=$(abspath tests/hosts/openclaw) $(BIN)/python -m pytest -q -s tests/hosts/test_openclaw.py

test-codex: setup $(CODEX) ## Drive the real Codex, installed into tests/codex, against a mock on loopback
	$(BIN)/python -c 'from tests.codex.app_server import binary; raise SystemExit("npm brought no Codex for this platform" if binary() is None else 0)'
	$(BIN)/python -m pytest -q tests/codex

test-ai-sdk: setup ai-sdk $(AI_SDK_7) ## Drive version 6 of the AI SDK of Vercel, and version 7 on a Node of its own
	CONTEXTENGINE_CLIENTS=typescript $(BIN)/python -m pytest -q tests/clients/test_ai_sdk.py

test-recorded: setup $(CODEX) $(CLAUDE_CODE) ## Hold the real Codex and Claude Code (0.8 GB), whose plugins record, to the table of scenarios
	$(BIN)/python -m pytest -q -s tests/hosts/test_table.py tests/hosts/test_waits.py tests/hosts/test_behind_the_proxy.py -k 'codex or claude-code'

# Turns of each conversation that the SDKs of Python and Node hold through the proxy; `make test` plays ten.
HOST_TURNS ?= 200
LONG_TALKS := tests/hosts/test_proxy.py tests/hosts/test_node_sdks.py
# What npm brings is installed where there is one: 1.7 GB of 2.4.
HOSTS_OF_NPM := $(if $(shell command -v npm),$(NODE_HOSTS) openclaw ai-sdk $(OPENCLAW) $(CODEX) $(CLAUDE_CODE))
INSTALLED := CONTEXTENGINE_HERMES=$(abspath $(HERMES)/bin/python) $(if $(HOSTS_OF_NPM),CONTEXTENGINE_OPENCLAW=$(abspath tests/hosts/openclaw))

test-hosts: setup $(FRAMEWORKS_READY) $(HERMES) $(HOSTS_OF_NPM) ## Install every host (2.4 GB, ten minutes, once), hold all to their tests, long conversations to the proxy, and print what a call costs more
	CONTEXTENGINE_HOST_TURNS=$(HOST_TURNS) $(FRAMEWORKS)/bin/python -m pytest -q -n auto --dist worksteal --durations=5 $(LONG_TALKS)
	$(INSTALLED) $(FRAMEWORKS)/bin/python -m pytest -q -n auto --dist worksteal --durations=15 tests/hosts $(addprefix --ignore=,$(LONG_TALKS))
	$(BIN)/python -m tests.hosts.latency

test-frameworks: $(FRAMEWORKS_READY) $(if $(shell command -v npm),ai-sdk) ## Hold every framework, installed into tests/hosts, to one table of scenarios
	$(FRAMEWORKS)/bin/python -m pytest -q -n auto $(SLOW_HOSTS) tests/hosts/test_google_adk.py tests/hosts/test_google_adk_lives.py tests/hosts/test_google_adk_trees.py tests/hosts/test_langchain.py tests/hosts/test_langchain_lives.py tests/hosts/test_openai_agents.py tests/hosts/test_pydantic_ai_lives.py tests/hosts/test_framework_parts.py -k 'not (test_table and (codex or claude-code))'

test-helm: setup $(HELM) $(KUBERNETES) ## Lint and render the Helm chart, and start a server with what is rendered (needs Go)
	CONTEXTENGINE_HELM=yes $(BIN)/python -m pytest -q tests/deploy/test_chart.py

demo: $(RUN_READY) ## Replay the example transcripts and print what the model would see
	$(RUN_BIN)/python scripts/demo.py

bench: setup ## Measure the server against a bare handler (needs Go)
	$(BIN)/python tests/bench/run.py

bench-scale: setup ## Measure 100,000 sessions in one process and a million messages in one session (needs Go, an hour)
	$(BIN)/python tests/bench/run.py --scale

bench-postgres: setup ## Measure the server over PostgreSQL against itself over SQLite (needs Go, and Debian's postgresql)
	$(BIN)/python tests/bench/run.py --only postgres

bench-recall: setup ## Count the answers that stay in context and that Search finds, the share that stays cached, what masks save
	$(BIN)/python tests/bench/recall/run.py

# Seconds that each load counts, and which loads (parted by commas; empty: all): `$(BIN)/python tests/load/run.py --help`.
LOAD_SECONDS ?= 3
LOAD_ONLY ?=

.PHONY: load
load: setup $(GHZ) $(DELTAS) ## Load a seeded server with ghz, profile by profile, and find the knee (needs Go)
	$(BIN)/python tests/load/run.py --seconds $(LOAD_SECONDS) --only '$(LOAD_ONLY)'

SAMPLE ?= 300

mutants: setup ## Break the core in 300 small ways and count how many the tests notice (an hour)
	$(BIN)/python scripts/mutants.py --sample $(SAMPLE)

# Seconds that lives of sessions are played at random, to who keeps them in memory and who does not.
SOAK_SECONDS ?= 600

pressure: setup ## See what is left at ten times the load that fits, and of a quiet tenant beside a noisy one
	$(BIN)/python tests/load/pressure.py

soak: setup ## Kill a loaded server many times and look for every acknowledged message; project every transcript into every form; play random lives warm and cold
	CONTEXTENGINE_SOAK_SECONDS=$(SOAK_SECONDS) $(BIN)/python -m pytest -q tests/soak --ignore=tests/soak/test_two_servers.py --ignore=tests/soak/test_three_servers.py
	CONTEXTENGINE_ALL_PROJECTIONS=1 $(BIN)/python -m pytest -q tests/integration/projection/test_transcripts.py

# How often servers and the database die (half an hour on two cores), and how many lives of 200 steps
# are played to one server and to two that are killed (a quarter of an hour).
POSTGRES_KILLS ?= 200
POSTGRES_RESTARTS ?= 20
TURNS_LIVES ?= 100

soak-postgres: setup ## Kill, pause and restart three servers over one PostgreSQL and it; play lives to two servers in turns (Debian: postgresql, faketime)
	CONTEXTENGINE_POSTGRES=yes CONTEXTENGINE_POSTGRES_KILLS=$(POSTGRES_KILLS) CONTEXTENGINE_POSTGRES_RESTARTS=$(POSTGRES_RESTARTS) timeout 5400 $(BIN)/python -m pytest -q -s tests/soak/test_three_servers.py
	CONTEXTENGINE_POSTGRES=yes CONTEXTENGINE_TURNS_LIVES=$(TURNS_LIVES) timeout 3600 $(BIN)/python -m pytest -q -s tests/soak/test_two_servers.py

proto: setup $(BUF) $(GO_PLUGINS) $(TYPESCRIPT) ## Generate Python, Go and TypeScript from the protos
	$(BIN)/python scripts/gen_proto.py

proto-check: setup $(BUF) $(if $(shell command -v go),$(GO_PLUGINS)) $(TYPESCRIPT) ## Fail when the committed generated code is not what the protos say
	$(BIN)/python scripts/gen_proto.py --check

sync: setup ## Generate the blocking Python client from the asyncio one
	$(BIN)/python scripts/gen_sync.py

proto-image: $(BUF) ## Write the image of the protos that `buf breaking` compares with
	mkdir -p $(dir $(RELEASED))
	$(BUF) build --exclude-source-info -o $(RELEASED)

docs: setup ## Write the pages whose tables come from the code
	$(BIN)/python scripts/gen_docs.py

lint: setup $(BUF) proto-check $(if $(shell command -v go),$(ACTIONLINT)) ## Style, types, protos, the Dockerfile, the workflows
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BUF) lint
	$(BIN)/hadolint deploy/Dockerfile
	$(if $(shell command -v go),$(ACTIONLINT) -shellcheck= -pyflakes=)
	$(if $(wildcard $(RELEASED)),$(BUF) breaking --against $(RELEASED))
	$(BIN)/python scripts/version.py --check
	$(BIN)/python scripts/gen_sync.py --check

format: setup ## Format and mend what can be mended by itself
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: setup ## Compile the requirements again, with hashes and without download addresses
	scripts/lock.sh

# Not `npm ci`: it insists that the lock lists buf's binaries for every platform, a registry may hold only some.
$(BUF): package-lock.json
	npm install --no-save --ignore-scripts --no-audit --no-fund
	touch $@

$(HERMES): tests/hosts/hermes/requirements.txt
	"$(PYTHON)" -m venv $@
	$@/bin/python $(PIP_LOCKED) -r $<
	$@/bin/python $(PIP_INSTALL) --no-deps -e generated/python -e clients/python -e integrations/hermes
	@touch $@

$(FRAMEWORKS_READY): tests/hosts/requirements.txt $(PROJECTS) $(INTEGRATIONS)
	"$(PYTHON)" -m venv $(FRAMEWORKS)
	$(FRAMEWORKS)/bin/python $(PIP_LOCKED) -r $<
	$(FRAMEWORKS)/bin/python $(PIP_INSTALL) --no-deps --no-build-isolation $(OURS) $(BETWEEN)
	touch $@

# OpenClaw refuses to be installed by an older Node than it needs: what it runs on comes beside it.
$(OPENCLAW): tests/hosts/openclaw/package-lock.json
	cd tests/hosts/openclaw && npm install --no-save --ignore-scripts --no-audit --no-fund && npm rebuild node
	touch $@

$(NODE_HOSTS): tests/hosts/node/package-lock.json
	cd tests/hosts/node && npm install --no-save --ignore-scripts --no-audit --no-fund
	touch $@

# Version 7 needs a newer Node than the one that may stand here.
$(AI_SDK_7): tests/hosts/node7/package-lock.json
	cd tests/hosts/node7 && npm install --no-save --ignore-scripts --no-audit --no-fund && npm rebuild node
	touch $@

$(CLAUDE_CODE): tests/hosts/claude-code/package-lock.json
	cd tests/hosts/claude-code && npm install --no-save --ignore-scripts --no-audit --no-fund
	touch $@

$(CODEX): tests/codex/package-lock.json
	cd tests/codex && npm install --no-save --ignore-scripts --no-audit --no-fund
	touch $@

$(ACTIONLINT):
	GOBIN=$(abspath $(TOOLS)) go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.9

# A minute and a half on two idle cores, once.
$(HELM):
	@command -v go > /dev/null || { echo "Go 1.24 or newer is needed to build Helm: put go on PATH"; exit 1; }
	GOBIN=$(abspath $(TOOLS)) go install -ldflags '-s -w' helm.sh/helm/v3/cmd/helm@v3.19.2

$(KUBERNETES): tests/deploy/requirements.txt
	"$(PYTHON)" -m venv .tools/kubernetes
	.tools/kubernetes/bin/python $(PIP_LOCKED) -r $<
	@touch $@

# For the calls that the README shows.
$(GRPCURL):
	GOBIN=$(abspath $(TOOLS)) go install github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.3

$(TOOLS)/protoc-gen-go:
	GOBIN=$(abspath $(TOOLS)) go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.11

$(TOOLS)/protoc-gen-go-grpc:
	GOBIN=$(abspath $(TOOLS)) go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.1

# Four to six minutes on two cores, once.
$(TOOLS)/jaeger: tools/jaeger/go.mod tools/jaeger/go.sum
	@command -v go > /dev/null || { echo "Go 1.24 or newer is needed to build Jaeger: put go on PATH"; exit 1; }
	cd tools/jaeger && nice go build -trimpath -ldflags '-s -w' -o $(abspath $(TOOLS))/jaeger \
	  github.com/jaegertracing/jaeger/cmd/jaeger

$(GHZ):
	@command -v go > /dev/null || { echo "Go 1.23 or newer is needed for the load: put go on PATH"; exit 1; }
	GOBIN=$(abspath $(TOOLS)) go install github.com/bojand/ghz/cmd/ghz@v0.121.0

$(DELTAS): $(wildcard tests/load/deltas/*)
	@command -v go > /dev/null || { echo "Go 1.23 or newer is needed for the load: put go on PATH"; exit 1; }
	cd tests/load/deltas && go build -buildvcs=false -o $(abspath $@) .

# As above for buf: a lock made on one platform need not list what another needs.
$(TYPESCRIPT): clients/typescript/package-lock.json
	cd clients/typescript && npm install --no-save --ignore-scripts --no-audit --no-fund
	touch $@
