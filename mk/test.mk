# Tests, from the fastest to the slowest. Every suite ends with a line `N passed, N failed`.

.PHONY: test test-all test-verbs lint lint-aarch64 unit loom simulate programs robust verbs foreign foreign-all counts documents bench

test: begin needs lint unit loom programs robust verbs counts documents foreign
	@cat build/not-run

test-all: begin needs lint unit loom programs robust test-verbs counts documents foreign-all
	@cat build/not-run

# What could not be run here is said where it happens, and once more at the end.
.PHONY: begin
begin:
	@mkdir -p build && : > build/not-run

not_run = echo "*** $(1) NOT RUN: $(2) ***" | tee -a build/not-run

.PHONY: needs
needs:
	@scripts/needs.sh cc c++ python3 valgrind

lint: lint-aarch64
	$(CARGO) fmt --check
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings

# What is written for the other kind of processor compiles for it. Its standard library is fetched where rustup can do that.
lint-aarch64: begin
	@if $(std_aarch64); then \
	  set -x; $(CARGO) check --workspace --quiet --target $(AARCH64); \
	else $(call not_run,lint for aarch64,no standard library for $(AARCH64) here and rustup could not fetch it); fi

unit: stage
	timeout 1800 $(CARGO) test --workspace --quiet

# Every order of the memory accesses of rings and doorbells.
loom:
	RUSTFLAGS='--cfg loom' timeout 1200 $(CARGO) test -p channel --lib --profile loom --quiet --target-dir $(TARGET)/loom

# Ten thousand random programs on modelled machines under random faults. A seed that fails is the last one printed:
# `SEED=n make simulate` runs it alone.
simulate:
	SEEDS=$${SEEDS:-10000} $(CARGO) test --release -p mpi --test it simulated:: -- --nocapture

# C programs of our own, compiled by our mpicc, run by our mpiexec.
programs: stage
	python3 tests/c/run.py --prefix build

# What must not happen: killed ranks, full disks, wrong environments, things left behind.
robust: stage
	python3 tests/robust/run.py --prefix build

# On a real verbs stack, in a virtual machine (scripts/verbs-vm --help): `verbs` is what takes a minute or two, `test-verbs`
# all. Where no machine can be started, this is said loudly and the rest still counts.
verbs: stage
	@$(call machine,--short)

test-verbs: stage
	@$(call machine,)

machine = python3 tests/verbs/run.py --prefix build $(1); status=$$?; \
	if [ $$status = 3 ]; then $(call not_run,verbs,$$(cat build/tests/verbs/why-not)); \
	else cat build/tests/verbs/not-run >> build/not-run; exit $$status; fi

# Every command that README.md and docs/ show.
documents: stage
	python3 tests/docs/run.py

# Suites of others, as much as takes a few minutes; `foreign-all` is the whole.
foreign: stage
	@$(call suite,mpi4py,--subset ci)
	@$(call suite,mpich,--subset ci)

foreign-all: stage
	@$(call suite,mpi4py,)
	@$(call suite,mpich,)

# Their sources are fetched, from PyPI and Debian; where that cannot be (status 3) the rest still counts, and it is said loudly.
suite = python3 tests/foreign/$(1).py --prefix build $(2); status=$$?; \
	if [ $$status = 3 ]; then $(call not_run,$(1),its source could not be fetched); else exit $$status; fi

# Instructions of the hot paths, against the counts in tests/counts.
counts: stage
	python3 tests/counts/run.py --prefix build

# The table of docs/performance.md, measured here and now.
bench: stage
	build/bin/fishplate bench table --against "$$(scripts/peers.sh)" --markdown docs/performance.md
