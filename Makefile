# The project's commands; each line also runs by hand. What they make lies in .venv and build.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
# Python compiles a module when it is first imported: most of what is installed never is.
PINNED := $(PIP) install --require-hashes --no-compile
SOURCES := $(wildcard jms_broker*.py) \
	$(shell find broker storage pyspark_amqp tests/conformance -name '*.py' ! -name 'test_*') \
	$(wildcard tests/conformance/report_page.*) \
	$(shell find tests/conformance/jms_api/java -type f)
COMPILER_FILES := setup.cfg config/build_ext.py config/cold_paths.h config/mypyc.ini

# With this variable, each process of the tests would compile the tests' modules again.
unexport PYTHONDONTWRITEBYTECODE

# Whether this machine can build C extensions: the compiler that Python names, and its headers.
CAN_COMPILE := $(PYTHON) -c 'import pathlib, shutil, sys, sysconfig; \
	compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]; \
	sys.exit(not (shutil.which(compiler) \
		and pathlib.Path(sysconfig.get_path("include"), "Python.h").exists()))'
NO_COMPILER := no C compiler or no Python headers (on Debian: gcc python3-dev)

.PHONY: run build pipeline spark test packages quick check bench fuzz faults attacks mutations harness-mutants requirements coverage pins references docs \
	dist clean spark-matrix crashes

# The broker on 127.0.0.1:5672. `make run ARGS="--port 0"` passes options on. It does not wait for
# the client library of `jms-broker send`, which is built with what the compiler leaves over.
run: $(STAMPS)/runtime
	@if $(CAN_COMPILE); then \
		$(MAKE) --no-print-directory --silent $(STAMPS)/tools || exit; \
		{ nice -n 19 $(MAKE) --no-print-directory --silent $(STAMPS)/client || \
			echo "no client library: send, receive and browse do not work"; } & \
		$(MAKE) --no-print-directory --silent $(STAMPS)/compiled && \
		exec $(BIN)/jms-broker serve --config config/broker.toml $(ARGS); \
	else \
		echo "$(NO_COMPILER): the broker runs interpreted, at about a twentieth of its speed"; \
		exec $(BIN)/python -m jms_broker serve --config config/broker.toml $(ARGS); \
	fi

# Compiled and installed into .venv. The two halves share no files: two cores do both at once.
build:
	@$(MAKE) --no-print-directory --silent -j2 $(STAMPS)/compiled $(STAMPS)/client

# The compiled broker, and Spark for `jms-broker pipeline`, in .venv.
spark: build $(STAMPS)/spark

# The compiled broker, and the jobs of `jms-broker pipeline` without Spark, in .venv.
pipeline: build $(STAMPS)/pipeline

# The tests of modules that are compiled, on the checkout's .py files, those that take seconds first, so
# that no process has them left at the end; then every suite on the compiled broker, in twice as many
# processes as there are cores, since many tests wait for a program or a time. Files run in an order in
# which the cores are busy, and the last ones, of unit tests, are short: tests/support/scheduling.py. The
# rules of `make check` are left to it: each process would parse all sources.
ENGINE := tests/wire tests/unit/amqp tests/unit/jms tests/unit/links tests/unit/routing
INTERPRETED := tests/scenario/test_mutations.py tests/scenario/test_no_object_left.py \
	tests/scenario/test_no_object_left_of_services.py tests/docs/test_operations_page.py \
	$(ENGINE) tests/unit/storage/sql/segments tests/unit/test_address_settings.py
BY_CHECK := --ignore tests/test_tidy.py --ignore tests/test_citations.py
BY_FILE := --dist loadfile --no-loadscope-reorder
COMPILED := PYTEST_XDIST_AUTO_NUM_WORKERS=$$((2 * $$(nproc))) $(BIN)/pytest --compiled
test: $(STAMPS)/test
	@if $(CAN_COMPILE); then \
		$(MAKE) --no-print-directory --silent -j2 $(STAMPS)/compiled packages && \
		$(MAKE) --no-print-directory $(STAMPS)/bytecode && \
		$(BIN)/python -m pytest --numprocesses auto $(INTERPRETED) && \
		$(COMPILED) --numprocesses auto $(BY_FILE) $(BY_CHECK) tests; \
	elif [ "$$CI" = true ]; then \
		echo "$(NO_COMPILER): the compiled broker cannot be tested"; exit 1; \
	else \
		echo "SKIPPED the compiled suites: $(NO_COMPILER)"; \
		$(BIN)/python -m pytest tests; \
	fi

# What the suites need besides the broker: installed one after another, while that is compiled.
packages:
	@$(MAKE) --no-print-directory --silent -j1 $(addprefix $(STAMPS)/,client spark delta iceberg)

# While a change is made: the protocol engine and routing on the .py files.
quick: $(STAMPS)/test
	@$(BIN)/python -m pytest -q --numprocesses auto -m "not slow" $(ENGINE) $(ARGS)

# The oldest Spark that is supported, in an environment of its own: what is taken for granted of
# Spark, source and sink on it, and a replay. `make test` does the same and all else on the newest.
SPARK_OLDEST := build/spark-oldest
ON_OLDEST := $(addprefix tests/spark/test_,spark_behaviour.py browse.py source_events.py \
	lease_stream.py sink.py replay.py)
spark-matrix: $(STAMPS)/test
	@test -x $(SPARK_OLDEST)/bin/python || $(PYTHON) -m venv $(SPARK_OLDEST)
	@for pins in build client http test spark-oldest; do \
		$(SPARK_OLDEST)/bin/python -m pip --quiet --disable-pip-version-check install \
			--require-hashes --no-build-isolation -r requirements-$$pins.txt || exit 1; done
	$(SPARK_OLDEST)/bin/python -m pytest $(ON_OLDEST) $(ARGS)

# Whatever takes part in a stream on Spark is killed, at every moment: prints its table.
crashes: $(STAMPS)/test build $(STAMPS)/spark
	$(BIN)/pytest --compiled --crashes tests/spark/test_crashes.py $(ARGS)

# Style, types, who imports whom, caps.
check: $(STAMPS)/test
	@if $(CAN_COMPILE); then $(MAKE) --no-print-directory $(STAMPS)/spark; fi
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/lint-imports --config config/rooms.toml
	$(BIN)/python -m pytest tests/test_tidy.py tests/test_citations.py

# Speed, never a pass or fail: `make bench PEERS=artemis ARGS="--only small"`; of the pipeline
# `make bench SPARK=1`.
bench: $(STAMPS)/test build $(if $(SPARK),$(STAMPS)/spark)
	$(BIN)/python -m tests.bench$(if $(SPARK),.spark) $(if $(PEERS),--peers $(PEERS)) $(ARGS)

# Hostile input: guided by atheris on the .py files, by the million on the compiled broker.
# `make fuzz SECONDS=600`; what is found lies in build/fuzz/found.
SECONDS ?= 60
fuzz: $(STAMPS)/test
	@if $(CAN_COMPILE); then $(MAKE) --no-print-directory build; else echo "$(NO_COMPILER)"; fi
	@mkdir -p build && $(PINNED) -r requirements-fuzz.txt 2>build/atheris.log || \
		echo "atheris cannot be installed here: $$(grep -m 1 ERROR build/atheris.log)"
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS) $(ARGS)

# Kills, failing disks, cut connections by the hundred: `make faults ARGS="F1 --cycles 500 --seed 7"`.
FAULTS = $(BIN)/python -m tests.faults $(1) $(ARGS) \
	$(if $(ARGS),,&& $(BIN)/python -m tests.faults $(1) --postgres --cycles 100 F1)
SIMULATED = $(if $(ARGS),,&& $(BIN)/pytest --compiled --seeds 5000 tests/scenario/test_simulation.py)
faults: $(STAMPS)/test
	@if $(CAN_COMPILE); then \
		$(MAKE) --no-print-directory build && $(call FAULTS,--compiled) $(SIMULATED); \
	else \
		echo "$(NO_COMPILER): the broker runs interpreted"; \
		$(call FAULTS,); \
	fi

# Clients that try to exhaust the broker, beside a healthy one; prints memory, latency and verdicts:
# `make attacks ARGS="--only hoarding --seconds 30"`.
attacks: $(STAMPS)/test
	@if $(CAN_COMPILE); then \
		$(MAKE) --no-print-directory build && $(BIN)/python -m tests.attacks $(ARGS); \
	else \
		echo "$(NO_COMPILER): the broker runs interpreted"; \
		$(BIN)/python -m tests.attacks --interpreted $(ARGS); \
	fi

# Deliberate bugs, one by one: the simulation finds seventeen, and named files of tests find seven of
# access control and five of leadership; nothing is found where there is none.
mutations: $(STAMPS)/test
	@$(BIN)/python -m tests.scenario.mutations
	@$(BIN)/python -m tests.scenario.security_mutations
	@$(BIN)/python -m tests.scenario.leadership_mutations

# Forty deliberate bugs, one by one: prints which case of the conformance harness finds each, and fails
# if one is not found. `make harness-mutants ARGS="drain lease"` tries those with such words.
harness-mutants: $(STAMPS)/test
	@$(BIN)/python -m tests.harness_mutants $(ARGS)

# Which requirements and attacks have tests; fails where one that must have has none.
requirements: $(STAMPS)/test
	@$(BIN)/python -m pytest -q --collect-only --requirements tests

coverage: $(STAMPS)/test
	$(BIN)/coverage run -m pytest tests/unit tests/wire tests/scenario
	$(BIN)/coverage report --skip-covered

# The texts that are made from the code and its tests: pages of reference, parts of config/broker.toml.
references: $(STAMPS)/test
	@$(BIN)/python -m config.references

# The documentation site, in build/site; needs no network once its tools are installed.
docs: references $(STAMPS)/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@! grep -rE 'src="?https?://' build/site --include='*.html' || { echo "a page loads from elsewhere"; exit 1; }
	@echo "build/site; to read it with its search: python3 -m http.server --bind 127.0.0.1 --directory build/site"

# The requirements files, anew from pyproject.toml. Existing pins stay unless UPGRADE=--upgrade.
PIP_COMPILE := $(BIN)/uv pip compile --quiet $(UPGRADE) --python-version 3.11 --generate-hashes \
	--no-header pyproject.toml
pins: $(STAMPS)/runtime
	$(PIP) install uv==0.13.9
	$(PIP_COMPILE) -o requirements.txt
	$(PIP_COMPILE) --group build -c requirements.txt -o requirements-build.txt
	$(PIP_COMPILE) --extra client -c requirements-build.txt -o requirements-client.txt
	$(PIP_COMPILE) --extra http -c requirements-build.txt -o requirements-http.txt
	$(PIP_COMPILE) --extra arrow -c requirements-build.txt -c requirements-http.txt -o requirements-arrow.txt
	$(PIP_COMPILE) --extra postgresql -c requirements-build.txt -o requirements-postgresql.txt
	$(PIP_COMPILE) --extra oauth -c requirements-build.txt -o requirements-oauth.txt
	$(PIP_COMPILE) --extra otel -c requirements-build.txt -c requirements-oauth.txt -o requirements-otel.txt
	$(PIP_COMPILE) --extra spark -c requirements-build.txt -c requirements-arrow.txt \
		-c requirements-client.txt -c requirements-http.txt -o requirements-spark.txt
	mkdir -p build && echo 'pyspark<4.3' >build/oldest.txt
	$(PIP_COMPILE) --extra spark -c requirements-build.txt -c requirements-arrow.txt \
		-c requirements-client.txt -c requirements-http.txt -c build/oldest.txt -o requirements-spark-oldest.txt
	$(PIP_COMPILE) --group build --group dev -c requirements-build.txt -o requirements-test.txt
	$(PIP_COMPILE) --extra pipeline -c requirements-build.txt -c requirements-arrow.txt \
		-c requirements-client.txt -c requirements-http.txt -c requirements-test.txt \
		-o requirements-duckdb.txt
	$(PIP_COMPILE) --extra delta -c requirements-build.txt -c requirements-oauth.txt \
		-c requirements-otel.txt -o requirements-delta.txt
	$(PIP_COMPILE) --extra iceberg -c requirements-build.txt -c requirements-arrow.txt \
		-c requirements-oauth.txt -c requirements-otel.txt -c requirements-test.txt \
		-o requirements-iceberg.txt
	$(PIP_COMPILE) --group docs -c requirements-test.txt -o requirements-docs.txt
	$(PIP_COMPILE) --group build --group dist -c requirements-build.txt -o requirements-dist.txt
	$(PIP_COMPILE) --group fuzz -c requirements.txt -o requirements-fuzz.txt
	$(subst pyproject.toml,,$(PIP_COMPILE)) --group api-clients -o requirements-api-clients.txt

# What is released, in dist/: the source, the wheel in pure Python, and the wheel compiled for this
# Python, repaired so that older systems can load it. Checked, and installed into empty environments:
# `make dist OTHERS="python3.12 python3.13"` compiles and tries the wheel for those, too.
dist: $(STAMPS)/compiled $(STAMPS)/dist
	$(BIN)/python -m config.release $(OTHERS)

clean:
	rm -rf $(VENV) build dist

# ---- what the commands stand on: each stamp is made again when what it names has changed ----

$(STAMPS)/venv:
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/runtime: requirements.txt | $(STAMPS)/venv
	@echo "installing what the broker needs into $(VENV)"
	@$(PINNED) -r requirements.txt
	@touch $@

$(STAMPS)/tools: requirements-build.txt $(STAMPS)/runtime
	@$(PINNED) -r requirements-build.txt
	@touch $@

$(STAMPS)/http: requirements-http.txt $(wildcard requirements-arrow.txt) | $(STAMPS)/tools
	@echo "installing what the HTTP server and its Arrow streams need"
	@$(PINNED) $(addprefix -r ,$^)
	@touch $@

$(STAMPS)/test: requirements-test.txt $(STAMPS)/tools $(STAMPS)/http
	@$(PINNED) -r requirements-test.txt
	@touch $@

# pytest compiles a test's module when it is first collected. Without this, each process of the suites
# would compile all of them.
$(STAMPS)/bytecode: $(STAMPS)/test | $(STAMPS)/compiled $(STAMPS)/client
	@echo "compiling the tests to bytecode"
	@printf '%s\n' tests/unit 'tests --ignore tests/unit --ignore tests/spark' | xargs -P 2 -I PLACES sh -c \
		'$(BIN)/pytest --compiled --collect-only -qq PLACES >build/collected.$$$$ 2>&1 || { cat build/collected.$$$$; exit 255; }'
	@rm -f build/collected.*
	@touch $@

# Proton comes as C source. It is built with the pinned setuptools and cffi that `tools` brought.
$(STAMPS)/client: requirements-client.txt | $(STAMPS)/tools
	@echo "building the client library"
	@$(PINNED) --no-build-isolation -r requirements-client.txt
	@echo "the client library is there: jms-broker send, receive and browse work"
	@touch $@

$(STAMPS)/dist: requirements-dist.txt | $(STAMPS)/tools
	@echo "installing what builds a release"
	@$(PINNED) -r requirements-dist.txt
	@touch $@

$(STAMPS)/docs: requirements-docs.txt | $(STAMPS)/tools
	@echo "installing what builds the documentation"
	@$(PINNED) -r requirements-docs.txt
	@touch $@

# Spark comes as source too, without anything to compile: setuptools makes a wheel of it.
$(STAMPS)/spark: requirements-spark.txt $(STAMPS)/client | $(STAMPS)/http
	@echo "installing Spark: half a gigabyte"
	@$(PINNED) --no-build-isolation -r requirements-spark.txt
	@touch $@

$(STAMPS)/pipeline: requirements-duckdb.txt $(STAMPS)/client | $(STAMPS)/http
	@echo "installing DuckDB"
	@$(PINNED) --no-build-isolation -r requirements-duckdb.txt
	@touch $@

$(STAMPS)/delta: requirements-delta.txt | $(STAMPS)/tools
	@echo "installing what writes Delta tables"
	@$(PINNED) -r requirements-delta.txt
	@touch $@

$(STAMPS)/iceberg: requirements-iceberg.txt | $(STAMPS)/http
	@echo "installing what writes Iceberg tables"
	@$(PINNED) -r requirements-iceberg.txt
	@touch $@

# A copy is built: the hook leaves .so files in its tree, which would hide the .py files here.
$(STAMPS)/compiled: pyproject.toml README.md $(COMPILER_FILES) $(SOURCES) | $(STAMPS)/tools
	@echo "compiling the broker"
	@rm -rf build/tree build/wheel && mkdir -p build/tree/tests build/tree/config
	@cp -R broker storage pyspark_amqp jms_broker*.py pyproject.toml README.md LICENSE setup.cfg build/tree
	@cp $(filter config/%,$(COMPILER_FILES)) build/tree/config
	@cp -R tests/conformance build/tree/tests
	@find build/tree \( -name '*.so' -o -name __pycache__ \) -prune -exec rm -rf {} +
	@HATCH_BUILD_HOOKS_ENABLE=true $(PIP) wheel --no-deps --no-build-isolation -w build/wheel ./build/tree
	@$(PIP) install --no-deps --no-index --force-reinstall build/wheel/*.whl
	@touch $@
