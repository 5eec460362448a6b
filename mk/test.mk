# Tests, from the fastest to the slowest. Every suite ends with a line `N passed, N failed`.

.PHONY: test test-all lint unit loom programs robust foreign foreign-all counts documents bench

test: needs lint unit loom programs robust counts documents foreign

test-all: needs lint unit loom programs robust counts documents foreign-all

.PHONY: needs
needs:
	@scripts/needs.sh cc c++ python3 valgrind

lint:
	$(CARGO) fmt --check
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings

unit:
	timeout 1800 $(CARGO) test --workspace --quiet

# Every order of the memory accesses of rings and doorbells.
loom:
	RUSTFLAGS='--cfg loom' timeout 1200 $(CARGO) test -p channel --lib --release --quiet --target-dir $(TARGET)/loom

# C programs of our own, compiled by our mpicc, run by our mpiexec.
programs: stage
	python3 tests/c/run.py --prefix build

# What must not happen: killed ranks, full disks, wrong environments, things left behind.
robust: stage
	python3 tests/robust/run.py --prefix build

# Every command that README.md and docs/ show.
documents: stage
	python3 tests/docs/run.py

# Suites of others, a part of each; `foreign-all` is the whole.
foreign: stage
	python3 tests/foreign/mpi4py.py --prefix build --ranks 1,2 --only test_group test_p2p_buf_matched test_cco_vec test_pack
	@$(call mpich,--chapter info)

foreign-all: stage
	python3 tests/foreign/mpi4py.py --prefix build
	@$(call mpich,)

# Its source is fetched from Debian; where that cannot be had (status 3) the rest still counts, and it is said loudly.
mpich = python3 tests/foreign/mpich.py --prefix build $(1); status=$$?; \
	if [ $$status = 3 ]; then echo '*** MPICH programs NOT RUN: their source could not be fetched ***'; else exit $$status; fi

# Instructions of the hot paths, against the counts in tests/counts.
counts: stage
	python3 tests/counts/run.py --prefix build

# The table of docs/performance.md, measured here and now.
bench: stage
	build/bin/fishplate bench table --against "$$(scripts/peers.sh)" --markdown docs/performance.md
