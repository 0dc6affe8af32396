# "make help" lists the targets. They need Python 3.11 or newer and a package registry.

PYTHON ?= python3
SAMPLE := src/rankgauge/sample
# Each process starts with its part of the files, and takes tests from others when it has none left.
PARALLEL := --numprocesses auto --dist worksteal
# Tests of scripts, pages, and tools for developers, which "make test-lowest" leaves out. It calls the
# code with small inputs; "make test" also reads the collections.
NOT_LOWEST := tests/benchmarks tests/tools tests/test_docs.py tests/test_fuzz.py \
	tests/test_oracle_files.py tests/test_other_tools_page.py
# The extras of the demos; a variable, because a comma would end an argument of $(call).
DEMO := '.[bm25,plots,vectors,web]'
# Arguments of the benchmarks and of the fuzzer, as in: make bench-peers BENCH=--large
BENCH ?=
FUZZ ?=
# Seed of the malformed logs and replies of "make fuzz".
SEED ?= 0
# Arguments of the release check, as in: make release-check RELEASE='--python 3.13'
RELEASE ?=
# Repetitions of the scenarios of "make test-stores".
ROUNDS ?= 3
# The module that "make mutants" changes, and the tests that should fail.
MODULE ?= src/rankgauge/stats/corrections.py
TESTS ?= tests/stats
# gcc's sanitizer libraries must be loaded first; leaks are ignored, since Python does not free all
# memory at exit.
SANITIZED = PYTHONPATH=build/native ASAN_OPTIONS=detect_leaks=0 \
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)"
# Tests start hundreds of processes: without stored bytecode, each would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE
PIP := -m pip --quiet --disable-pip-version-check
SETUP := pyproject.toml constraints.txt hatch_build.py src/rankgauge/core/native.c

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

# ---- targets

demo: .venv/runtime.stamp ## create a project from the bundled sample, compare two retrievers, and show the next step
	@rm -rf build/demo && mkdir -p build/demo
	@cp $(addprefix $(SAMPLE)/,corpus.jsonl queries.jsonl qrels.txt) build/demo
	.venv/bin/rankgauge init build/demo
	.venv/bin/rankgauge bench build/demo
	.venv/bin/rankgauge status build/demo

demo-serve: .venv/runtime.stamp ## open the pages of the bundled sample: retrievers, answers, judging, a gate, production
	@rm -rf build/demo-serve && mkdir -p build/demo-serve
	@cp -r $(addprefix $(SAMPLE)/,corpus.jsonl queries.jsonl answers) build/demo-serve
	@awk 'NR % 3' $(SAMPLE)/qrels.txt > build/demo-serve/qrels.txt
	@awk 'NR % 6 == 0' $(SAMPLE)/qrels.txt > build/demo-serve/judged.txt
	.venv/bin/rankgauge logs import -q --mapping $(SAMPLE)/log/mapping.toml $(SAMPLE)/log/searches.jsonl.gz build/demo-serve/log
	.venv/bin/rankgauge init build/demo-serve
	@printf '\n[answers]\nfile = "answers/prompt-1.jsonl"\nreference = "answers/questions.jsonl"\n' >> build/demo-serve/rankgauge.toml
	@printf '\n[alerts]\nidk_rate = { max = 0.2 }\nthumbs_ratio = { min = 0.6 }\n' >> build/demo-serve/rankgauge.toml
	.venv/bin/rankgauge bench build/demo-serve -q
	cd build/demo-serve && export PATH="$(CURDIR)/.venv/bin:$$PATH" && \
	rankgauge judge create --mode graded --questions queries.jsonl --title "Library help center" && \
	rankgauge sensitivity deciding bm25#1 use-multilingual#2 --depth 10 --queue queue.run -q && \
	rankgauge judge pool --collection . --run queue.run -k 20 && \
	rankgauge judge import judged.txt --judge "Judge 1" && \
	rankgauge gate bm25#1 --update-baseline && \
	(rankgauge gate use-multilingual#2 || true) && \
	rankgauge answers evaluate -q && \
	rankgauge serve --open

demo-answers: .venv/runtime.stamp ## evaluate the answers of two prompts: does retrieval fail, or generation?
	for prompt in 1 2; do .venv/bin/rankgauge answers evaluate $(SAMPLE)/answers/prompt-$$prompt.jsonl \
		--reference $(SAMPLE)/answers/questions.jsonl --full; done

test: check ## all checks before a commit: check, tests except the slow ones, doctests, docs
	.venv/bin/python -m pytest $(PARALLEL) -m "not slow and not long" --doctest-modules tests src docs README.md
	@$(MAKE) --no-print-directory docs

test-slow: .venv/dev.stamp ## run the tests that take more than a third of a second each
	.venv/bin/python -m pytest $(PARALLEL) --quiet -m "slow or long" tests

test-stores: .venv/dev.stamp ## end processes that share a store by signals, in every order; ROUNDS=3 times each
	ROUNDS=$(ROUNDS) .venv/bin/python -m pytest $(PARALLEL) --quiet -m slow tests/store/test_store_processes.py \
		tests/web/test_web_processes.py tests/store/test_artifact_failures.py tests/answers/test_runner.py

check: .venv/dev.stamp ## check format, lint, types, layers, and changelog fragments
	.venv/bin/ruff format --check --quiet .
	.venv/bin/ruff check --quiet .
	.venv/bin/mypy --no-error-summary
	.venv/bin/lint-imports --no-logo
	@echo ".venv/bin/towncrier build --draft --version next"
	@output=$$(.venv/bin/towncrier build --draft --version next 2>&1) || { echo "$$output"; exit 1; }

cover: .venv/dev.stamp ## run all tests, and list the lines and branches that they miss
	.venv/bin/python -m pytest --quiet --cov tests

docs: .venv/dev.stamp ## build the documentation in build/docs (works offline)
	.venv/bin/sphinx-build --nitpicky --fail-on-warning --quiet --jobs auto --builder html docs build/docs
	@echo "open build/docs/index.html"

sessions: .venv/dev.stamp ## update the output of code and shell sessions in the documentation
	.venv/bin/python docs/_scripts/notebooks.py --write
	.venv/bin/python docs/_scripts/consoles.py --write

bench: .venv-bench/bench.stamp ## compare the speed with ir_measures and pytrec_eval, and with our last release
	.venv-bench/bin/python benchmarks/run.py $(BENCH)
	.venv-bench/bin/python benchmarks/stages.py

bench-peers: .venv-peers/peers.stamp ## compare the speed with all peers; BENCH=--large adds millions of rows
	.venv-peers/bin/python benchmarks/run.py $(BENCH)
	.venv-peers/bin/python benchmarks/comparing.py $(BENCH)
	.venv-peers/bin/python benchmarks/running.py $(BENCH)
	.venv-peers/bin/python benchmarks/checking.py $(BENCH)
	.venv-peers/bin/python benchmarks/commands.py $(BENCH)
	.venv-peers/bin/python benchmarks/ties.py $(BENCH)

speed: .venv-peers/peers.stamp .venv/dev.stamp ## measure all tables of docs/explain/speed.md again (takes over an hour; Drift needs RANKGAUGE_TEST_DATA)
	for script in run comparing running checking commands ties; do \
		.venv-peers/bin/python benchmarks/$$script.py --large --write docs/explain/speed.md || exit 1; done
	for script in diversity judging judging_pages drift answers project workbench; do \
		.venv/bin/python benchmarks/$$script.py --write docs/explain/speed.md || exit 1; done

scale: .venv/dev.stamp .venv-spark/spark.stamp ## measure the tables of docs/howto/scale.md again (half an hour; needs Java)
	.venv/bin/python benchmarks/scale.py --write docs/howto/scale.md
	.venv-spark/bin/python benchmarks/scale.py --spark --write docs/howto/scale.md

test-lowest: .venv-lowest/lowest.stamp ## run the tests with the oldest supported libraries, without the compiled core
	env -u RANKGAUGE_TEST_DATA RANKGAUGE_NATIVE=0 .venv-lowest/bin/python -m pytest \
		$(PARALLEL) --quiet -m "not slow and not long" $(addprefix --ignore=,$(NOT_LOWEST)) tests

test-frames: .venv-frames/pandas2.stamp ## run the data frame tests with pandas 2
	.venv-frames/bin/python -m pytest --quiet tests/formats/test_frames.py tests/formats/test_arrow.py

test-adapters: .venv-adapters/adapters.stamp ## run the tests of retrievers that need large libraries
	.venv-adapters/bin/python -m pytest $(PARALLEL) --quiet tests/adapters

test-integrations: .venv-integrations/integrations.stamp ## run the examples for MLflow, Phoenix, and other tools with the tools themselves
	PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 .venv-integrations/bin/python -m pytest --quiet tests/integrations tests/adapters/test_vector_stores.py

test-spark: .venv-spark/spark.stamp ## run the Spark tests: local, Connect, a cluster that loses a worker (needs Java)
	.venv-spark/bin/python -m pytest $(PARALLEL) --quiet \
		tests/distributed/test_spark.py tests/production/test_spark_log.py

test-profiles: .venv-tools/tools.stamp ## compare profiles and docs/explain/other-tools.md with the tools themselves
	SEEDS=12 .venv-tools/bin/python -m pytest --quiet tests/tools
	.venv-tools/bin/python docs/_scripts/other_tools.py

fuzz: .venv/dev.stamp ## read a million malformed files, logs, and replies; test properties with many examples; FUZZ='--seed 7' SEED=7 changes the cases
	.venv/bin/python scripts/fuzz.py $(FUZZ)
	SEED=$(SEED) RANKGAUGE_FUZZ=50000 .venv/bin/python -m pytest $(PARALLEL) --quiet \
		tests/production/test_log_fuzz.py tests/llm/test_malformed_replies.py
	HYPOTHESIS_PROFILE=many .venv/bin/python -m pytest $(PARALLEL) --quiet -m hypothesis tests

fuzz-native: .venv/dev.stamp ## test and fuzz the compiled core with AddressSanitizer and UBSan (needs gcc)
	@rm -rf build/native && mkdir -p build/native && cp -r src/rankgauge build/native
	@rm -f build/native/rankgauge/core/_native*.so
	gcc -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -shared -fPIC \
		-I"$$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("include"))')" \
		src/rankgauge/core/native.c -o build/native/rankgauge/core/_native.abi3.so
	$(SANITIZED) .venv/bin/python -m pytest --quiet tests/core/test_native.py tests/data/test_joined_blocks.py \
		tests/evaluation/test_large_files.py
	$(SANITIZED) .venv/bin/python scripts/fuzz.py --cases 20000 --target run $(FUZZ)
	$(SANITIZED) .venv/bin/python scripts/fuzz.py --cases 20000 --target evaluate $(FUZZ)

release-check: .venv-release/release.stamp ## build, inspect, install without a compiler, and test what a release uploads (Python 3.11 to 3.14)
	.venv-release/bin/python scripts/release_check.py $(RELEASE)

mutants: .venv-mutants/mutants.stamp ## mutation tests: list the changes to MODULE that TESTS do not detect
	@rm -rf build/mutants && mkdir -p build/mutants
	@cp -r src tests benchmarks docs scripts conftest.py pyproject.toml build/mutants
	@printf '%s\n' '[cosmic-ray]' 'module-path = "$(MODULE)"' 'timeout = 120.0' 'excluded-modules = []' \
		'test-command = "$(CURDIR)/.venv-mutants/bin/python -m pytest -x -q $(TESTS)"' \
		'[cosmic-ray.distributor]' 'name = "local"' > build/mutants/mutants.toml
	cd build/mutants && export PYTHONPATH=src PATH="$(CURDIR)/.venv-mutants/bin:$$PATH" && \
		cosmic-ray init mutants.toml mutants.sqlite && cosmic-ray exec mutants.toml mutants.sqlite && \
		cr-report --surviving-only --show-diff mutants.sqlite

clean: ## remove everything that make created
	rm -rf .venv .venv-adapters .venv-bench .venv-peers .venv-lowest .venv-frames .venv-integrations .venv-mutants .venv-release .venv-spark .venv-tools build dist .coverage .hypothesis
	rm -f docs/reference/measures/*.markdown
	rm -rf .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# ---- environments: if a stamp is older than $(SETUP), its environment is updated

.venv/runtime.stamp: $(SETUP)
	@$(call environment,$(@D))
	@$(call install,$(@D),constraints.txt,--editable $(DEMO))
	@touch $@

.venv/dev.stamp: .venv/runtime.stamp
	@$(call install,$(@D),constraints.txt,--group dev)
	@touch $@

.venv-bench/bench.stamp: $(SETUP)
	@$(call environment,$(@D))
	@$(call install,$(@D),constraints.txt,--editable . --group bench)
	@touch $@

.venv-peers/peers.stamp: $(SETUP)
	@$(call environment,$(@D))
	@# Install torch first and alone: as a dependency, some registries select a 5 GB build with CUDA.
	@$(call install,$(@D),constraints.txt,torch==2.13.0)
	@$(call install,$(@D),constraints.txt,--editable . --group peers)
	@touch $@

.venv-lowest/lowest.stamp: $(SETUP) constraints-lowest.txt
	@$(call environment,$(@D))
	@$(call override,constraints-lowest.txt) > $(@D)/constraints.txt
	@$(call install,$(@D),$(@D)/constraints.txt,--editable . --group test)
	@touch $@

.venv-frames/pandas2.stamp: $(SETUP) constraints-pandas2.txt
	@$(call environment,$(@D))
	@$(call override,constraints-pandas2.txt) > $(@D)/constraints.txt
	@$(call install,$(@D),$(@D)/constraints.txt,--editable . --group test)
	@touch $@

.venv-spark/spark.stamp: $(SETUP) constraints-pandas2.txt
	@$(call environment,$(@D))
	@$(call override,constraints-pandas2.txt) > $(@D)/constraints.txt
	@$(call install,$(@D),$(@D)/constraints.txt,--editable . --group spark)
	@touch $@

.venv-adapters/adapters.stamp: $(SETUP)
	@$(call environment,$(@D))
	@# Install torch first and alone: as a dependency, some registries select a 5 GB build with CUDA.
	@$(call install,$(@D),constraints.txt,torch==2.13.0)
	@$(call install,$(@D),constraints.txt,--editable . --group adapters)
	@touch $@

.venv-integrations/integrations.stamp: $(SETUP) constraints-integrations.txt
	@$(call environment,$(@D))
	@$(call override,constraints-integrations.txt) > $(@D)/constraints.txt
	@$(call install,$(@D),$(@D)/constraints.txt,--editable . --group integrations)
	@touch $@

.venv-release/release.stamp: $(SETUP)
	@$(call environment,$(@D))
	@$(call install,$(@D),constraints.txt,--group release)
	@touch $@

.venv-mutants/mutants.stamp: $(SETUP)
	@$(call environment,$(@D))
	@$(call install,$(@D),constraints.txt,--editable . --group test --group mutants)
	@touch $@

.venv-tools/tools.stamp: $(SETUP)
	@$(call environment,$(@D))
	@# Install torch first and alone: as a dependency, some registries select a 5 GB build with CUDA.
	@$(call install,$(@D),constraints.txt,torch==2.13.0)
	@$(call install,$(@D),constraints.txt,--editable . --group tools)
	@touch $@

RECENT := -c 'import sys; sys.exit(sys.version_info < (3, 11))'

# environment: create a virtual environment in folder $1, unless it has a suitable one
define environment
$(1)/bin/python $(RECENT) 2> /dev/null || { \
	$(PYTHON) $(RECENT) 2> /dev/null || { \
		echo "rankgauge needs Python 3.11 or newer; '$(PYTHON)' is:" \
			"$$($(PYTHON) --version 2>&1 | tail -n 1)." >&2; \
		echo "fix: name a newer one, as in: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; \
		exit 1; }; \
	echo "creating $(1) with $$($(PYTHON) --version)"; \
	$(PYTHON) -m venv --clear $(1); }
endef

# install: install the requirements $3 in environment $1 with the constraints file $2
define install
echo "installing in $(1): $(3)" && \
$(1)/bin/python $(PIP) install --upgrade --constraint constraints.txt pip && \
$(1)/bin/python $(PIP) install --build-constraint constraints.txt --constraint $(2) $(3)
endef

# override: print constraints.txt, with the packages in file $1 taken from there
define override
awk -F '[=; ]+' '/^#/ || !NF { next } NR == FNR { own[$$1]; print; next } !($$1 in own)' \
	$(1) constraints.txt
endef

.PHONY: help demo demo-answers test test-slow test-stores check cover docs sessions bench bench-peers speed scale test-lowest test-frames test-adapters test-integrations test-spark test-profiles fuzz fuzz-native release-check mutants clean
