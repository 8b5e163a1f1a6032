# make demo: install into .venv, value a bundled data set, write a report
# make test: install everything into .venv-test and run all tests but the slow and the long ones
# make test-slow: experiments at their quick sizes, long pages of the docs, workers that die, compiling from nothing
# make test-long: many seeds, many killed processes
# make fuzz: random cases against plain enumeration, SECONDS=60 of them from SEED=1000 on; CASE=17 plays one again
# make test-processors: the quick tests with the linear algebra of processors without AVX-512, and with it
# make test-pythons: the quick tests on every Python that is found, with the oldest and the newest dependencies, and pandas 2.3
# make coverage: all tests but the slow and the long ones, and which lines they run
# make wheel: sdist and wheel into dist/, checked
# make test-wheel: the wheel in an empty environment runs what the README shows
# make results: every page of docs/results that needs no GPU; results-gpu, results-opendataval: the others
PYTHON ?= python3
# Some systems tell Python to keep no bytecode: then each process of the tests would compile each package for itself.
export PYTHONDONTWRITEBYTECODE =
# One process more than there are cores: some tests wait for others.
PYTEST = .venv-test/bin/python -m pytest --dist worksteal --numprocesses $$($(PYTHON) -c "import os; print(os.cpu_count() + 1)")
.PHONY: demo test test-slow test-long test-processors test-pythons test-wheel coverage fuzz wheel lint docs results results-gpu results-opendataval clean

demo: .venv/installed
	.venv/bin/localshapley demo --out demo

test: .venv-test/installed
	.venv-test/bin/localshapley warm-up  # or each process of the tests would compile for itself
	$(PYTEST)

test-long: .venv-test/installed
	$(PYTEST) -m long tests

test-slow: .venv-test/installed
	$(PYTEST) -m slow tests

# OpenBLAS, NumPy, PyTorch and numba use what the processor can do, and with it change the last bits. `make test` runs with
# this one; here it is one without AVX-512 (compiled kernels in a folder of their own), and where that is what it is, SkylakeX.
OWN_KERNELS = import numpy, threadpoolctl; print(threadpoolctl.threadpool_info()[0]["architecture"])
WIDE = import numpy as np; print(*(f for f in np.show_config(mode="dicts")["SIMD Extensions"]["found"] if "512" in f or f == "X86_V4"))
HASWELL = OPENBLAS_CORETYPE=Haswell ATEN_CPU_CAPABILITY=avx2 NPY_DISABLE_CPU_FEATURES="$$(.venv-test/bin/python -c '$(WIDE)')"
test-processors: .venv-test/installed
	own=$$(.venv-test/bin/python -c '$(OWN_KERNELS)'); \
	if [ "$$own" != Haswell ]; then $(HASWELL) $(PYTEST) -m quick tests --deselect tests/test_golden.py || exit 1; \
	  $(HASWELL) NUMBA_CPU_NAME=haswell NUMBA_CPU_FEATURES=+avx2,+fma $(PYTEST) tests/test_golden.py || exit 1; fi; \
	if [ "$$own" != SkylakeX ] && grep -q avx512f /proc/cpuinfo; then OPENBLAS_CORETYPE=SkylakeX $(PYTEST) -m quick tests; fi

test-wheel: .venv-test/installed
	.venv-test/bin/python -m pytest -m slow tests/test_wheel.py

test-pythons: .venv-tools/installed
	.venv-tools/bin/nox

coverage: .venv-test/installed
	$(PYTEST) --cov --cov-report=term:skip-covered --cov-report=xml

# Those below 300 are part of the quick tests.
SECONDS ?= 60
SEED ?= 1000
fuzz: .venv-test/installed
	PYTHONPATH=tests OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 .venv-test/bin/python -m fuzz.run \
		$(if $(CASE),--case $(CASE),--seed $(SEED) --seconds $(SECONDS))

wheel: .venv-tools/installed
	rm -rf dist
	.venv-tools/bin/python -m build
	.venv-tools/bin/twine check --strict dist/*

lint: .venv-test/installed
	.venv-test/bin/ruff check .
	.venv-test/bin/ruff format --check .
	.venv-test/bin/mypy

# Every table and figure of docs/results at full size; goes on where it was stopped. Data files: see LOCALSHAPLEY_DATA.
results: .venv-test/installed
	.venv-test/bin/python experiments/results.py $(RESULTS)

# The graph pages, on a GPU: with the Python that has PyTorch for it.
results-gpu:
	PYTHONPATH=src $(PYTHON) experiments/results.py --gpu $(RESULTS)

# The page of OpenDataVal's protocol, in an environment of its own that it makes, with hours of its evaluators' trainings.
results-opendataval: .venv-test/installed
	.venv-test/bin/python experiments/opendataval_protocol.py $(RESULTS)

docs: .venv-test/installed
	NO_MKDOCS_2_WARNING=1 .venv-test/bin/mkdocs build --strict --quiet

.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --quiet --upgrade pip
	.venv/bin/python -m pip install --quiet --editable .
	touch $@

.venv-test/installed: pyproject.toml requirements-test.txt
	$(PYTHON) -m venv .venv-test
	.venv-test/bin/python -m pip install --quiet --no-compile --requirement requirements-test.txt --editable .
	touch $@

.venv-tools/installed: requirements-tools.txt
	$(PYTHON) -m venv .venv-tools
	.venv-tools/bin/python -m pip install --quiet --upgrade pip
	.venv-tools/bin/python -m pip install --quiet --requirement requirements-tools.txt
	touch $@

clean:
	rm -rf .venv .venv-test .venv-tools .nox dist site demo
