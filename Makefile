# Everything the project does, from a clean clone: python3 (3.11 or newer) and make are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
export PYTHONHASHSEED ?= 0

.PHONY: demo demo-spark serve check hooks test test-all lint audit bench browser java rscript proxies units office docs pictures sbom clean help
.DEFAULT_GOAL := help

help:
	@echo "make demo           publish tables of 200,000 generated people and show one"
	@echo "make demo-spark     the same tables counted on a Spark cluster of this machine, compared with those counted here"
	@echo "make serve          a table builder over 100,000 generated people, until Ctrl-C"
	@echo "make check          format, lint, types, and the tests of what you changed (under a minute)"
	@echo "make hooks          run make check before every commit of this clone"
	@echo "make test           lint, types, import rules, unit tests, promises, doctests, one of each real thing (ten minutes)"
	@echo "make test-all       make test, then every slow test, and property tests with all their examples (half an hour)"
	@echo "make audit          the suites that draw for minutes (half an hour)"
	@echo "make bench NAME=x   one benchmark beside its peer: accuracy, cellkey, database, infer, lp, noise, pages, planner, release, scale, serve, spark, startup, suppress, synth, tabulate"
	@echo "make docs           the generated reference pages, and all pages as a site below site/ (under a minute)"
	@echo "make pictures       the pictures of the pages, drawn again (minutes)"
	@echo "make sbom           the software that a user installs, as a CycloneDX list: sbom.cdx.json (minutes, and 3 GB for a while)"
	@echo "make clean          everything that make has made"

# Stamps: what is installed is not installed again until the project's needs change.
$(VENV)/core: pyproject.toml papers/pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing tabulary ..."
	@$(PIP) --editable '.[formats,serve]'
	@touch $@

$(VENV)/test: $(VENV)/core
	@echo "Installing what the tests need ..."
	@$(PIP) --editable '.[test]' --editable papers
	@touch $@

$(VENV)/spark: $(VENV)/core
	@echo "Installing what a Spark cluster needs ..."
	@$(PIP) --editable '.[spark]' psutil
	@touch $@

$(VENV)/docs: $(VENV)/core
	@echo "Installing what the pages need ..."
	@$(PIP) --editable '.[docs]' --editable papers
	@touch $@

$(VENV)/sbom: $(VENV)/core
	@echo "Installing what the list of software needs ..."
	@$(PIP) --editable '.[sbom]'
	@touch $@

$(VENV)/bench: $(VENV)/core
	@echo "Installing what the benchmarks need ..."
	@$(PIP) --editable '.[bench]' --editable papers
	@touch $@

demo: $(VENV)/core
	@$(BIN)/tabulary demo --output demo
	@echo "A table builder over such people: make serve"

demo-spark: $(VENV)/spark java
	@$(BIN)/python -m examples.spark.demo --output demo-spark

serve: $(VENV)/core
	@$(BIN)/tabulary serve --demo

# What the tests run besides Python: the program that is here, or Debian's where it can be installed.
# $(call apt,name,packages,what needs it)
apt = { sudo=$$(test "$$(id -u)" = 0 || echo "sudo --non-interactive"); echo "Installing $(1) ..."; \
	$$sudo apt-get update --quiet=2 && $$sudo apt-get install --quiet=2 --yes --no-install-recommends $(2); } \
	|| echo "$(1) could not be installed; $(3) it: sudo apt-get install --yes $(2)"

browser:
	@for name in chromium chromium-browser google-chrome google-chrome-stable; do \
		command -v $$name >/dev/null && exit 0; \
	done; \
	$(call apt,Chromium,chromium,the tests of pages need)

# Spark runs on Java 17 or newer.
java:
	@version=$$($${JAVA_HOME:+$$JAVA_HOME/bin/}java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p'); \
	test "$${version:-0}" -ge 17 && exit 0; \
	test -z "$$JAVA_HOME" || { echo "JAVA_HOME holds no Java 17 or newer, which Spark needs: unset it, or set it to one"; exit 0; }; \
	$(call apt,Java 17,openjdk-17-jre-headless,Spark needs)

# The report tells readers how to use R, and the tests run what it tells.
rscript:
	@command -v Rscript >/dev/null && exit 0; \
	$(call apt,R,r-base-core,the tests of the report need)

# The examples of proxies are run by nginx and Caddy.
proxies:
	@PATH=$$PATH:/usr/sbin; command -v nginx >/dev/null && command -v caddy >/dev/null && command -v openssl >/dev/null && exit 0; \
	$(call apt,nginx and Caddy,nginx caddy openssl,the tests of the proxies need)

# The units of the examples are checked by systemd-analyze.
units:
	@command -v systemd-analyze >/dev/null && exit 0; \
	$(call apt,systemd-analyze,systemd,the tests of the units need)

# The workbooks are opened and printed by LibreOffice, with a font as wide as Arial; poppler reads what was printed.
office:
	@command -v soffice >/dev/null && command -v pdftotext >/dev/null && exit 0; \
	$(call apt,LibreOffice,libreoffice-calc fonts-liberation poppler-utils,the tests of workbooks need)

# What a commit should pass; tools/changed_tests.py says which tests are those of a change.
check: lint
	@$(BIN)/python -m tools.changed_tests

hooks:
	@git config core.hooksPath .githooks
	@echo "make check runs before every commit of this clone; git commit --no-verify leaves it out once"

lint: $(VENV)/test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tools.plain_english

# Two processes share the cores already; a thread a core in each would only get in the way.
test test-all audit check: export OPENBLAS_NUM_THREADS ?= 1
# Property tests take a few examples each where somebody waits for them, and all of them elsewhere.
test check: export TABULARY_EXAMPLES := quick
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadgroup --durations=40 --durations-min=0.1

test: lint browser java rscript
	$(PYTEST) -m "not audit and (sample or not slow)"

# What make test has left out: slow tests, and property tests with all their examples.
test-all: test proxies units office
	$(PYTEST) -m "not audit and (hypothesis or (slow and not sample))"

audit: $(VENV)/test java
	$(PYTEST) -m audit tests

bench: $(VENV)/bench $(if $(filter spark scale,$(NAME)),java)
	@test -n "$(NAME)" || { echo "Name one: make bench NAME=noise | tabulate | lp | accuracy | planner | release | cellkey | infer | suppress | synth | serve | pages | database | spark | scale | startup"; exit 2; }
	@$(BIN)/python -m bench.$(NAME)

# A broken link, a page that is in no menu or an unknown anchor fails the build.
docs: $(VENV)/docs
	@$(BIN)/python -m docs.build
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --clean
	@echo "The site is in site/: open site/index.html, or, for the search as well: python3 -m http.server --directory site"

pictures: $(VENV)/test
	@$(BIN)/python -m docs.build --pictures

sbom: $(VENV)/sbom
	@echo "Installing tabulary with all that a user may add, for a while ..."
	@$(BIN)/python -m tools.sbom
	@echo "The list is in sbom.cdx.json"

clean:
	rm -rf $(VENV) demo demo-spark site sbom.cdx.json dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
