# Tests and measurements. Every suite ends with a line `N passed, N failed`; tests/all.py runs them, and prints a table of them at the end.

# Suites with a rule of their own below.
APART := applications binaries fuzz packages report

.PHONY: test test-ci test-all test-verbs foreign-all lint simulate mutants needs bench bench-simulator

# A user's first check: programs, launcher, wrappers, documents, figures of modelled machines.
test:
	@scripts/needs.sh cc c++ python3
	@scripts/needs.sh gfortran || true
	@python3 tests/all.py --first

# What protects the main branch (.ci/run): the first check, lints, unit tests, suites of others, a real verbs stack in an emulated machine.
test-ci: needs
	@python3 tests/all.py

# `make test-ci` without lints and tests in Rust, which hosted CI runs beside it (.github/workflows/ci.yml).
.PHONY: test-suites
test-suites: needs
	@python3 tests/all.py --suites

test-all: needs
	@scripts/needs.sh flex bison perl
	@python3 tests/all.py --all

# Says loudly that something could not run here. tests/all.py prints build/not-run once more at its end.
not_run = echo "*** $(1) NOT RUN: $(2) ***" | tee -a build/not-run

.PHONY: begin
begin:
	@mkdir -p build

needs:
	@scripts/needs.sh cc c++ python3 valgrind gfortran

# One suite, or a variant of one: tests/README.md says what each is about.
SUITES := unit loom verbs robust abis tcp documents mpi4py mpi4py-wheel mpi4py-wheel-openmpi mpich mpich-gfortran mpich-flang-new-19 binaries kernels recordings counts applications programs fortran launchers wrappers release-files messages rails checked skew speed-ups report site-check packages fuzz figures scores choice protocols
.PHONY: $(SUITES)
$(filter-out $(APART),$(SUITES)): stage
	@python3 tests/all.py $@

# The tests and suites that protect files: `make test-for FILES="crates/library/mpi/src/window/machine/memory.rs"`.
.PHONY: test-for
test-for: begin
	@python3 tests/affected.py $(FILES)

test-verbs: stage
	@python3 tests/all.py --all verbs

# The only network between two hosts breaks, for a while or for ever, between namespaces of this machine: ten minutes.
.PHONY: last-path
last-path: stage
	@scripts/needs.sh cc ip
	@python3 tests/tcp/run.py --prefix build --only 'last path'

# FFTW, HYPRE, PT-SCOTCH, and in Fortran MUMPS and Quantum ESPRESSO, with the checks that they bring.
.PHONY: applications fortran-applications
applications: stage
	@scripts/needs.sh flex bison perl gfortran
	@python3 tests/all.py applications

fortran-applications: stage
	@scripts/needs.sh gfortran
	@python3 tests/applications/run.py --prefix build --fortran

# ARMCI-MPI, Global Arrays and OpenCoarrays, which stand on one-sided communication, with their own tests.
.PHONY: foreign-rma
foreign-rma: stage
	@scripts/needs.sh cc python3 gfortran cmake autoreconf automake libtoolize m4 ip
	@python3 tests/foreign-rma/run.py --prefix build $(OPTIONS)

# Programs of PyPI and Debian as they are packaged: docs/figures/binaries.md. It fetches about a gigabyte, and takes some minutes after that.
# `make binaries OPTIONS='--only gromacs'` runs a part; `OPTIONS=--update` writes the document.
.PHONY: binaries
binaries: stage
	@scripts/needs.sh cc python3
	@python3 tests/binaries/run.py --prefix build $(OPTIONS)

# HDF5, PnetCDF, netCDF and h5py, with the parallel tests that they bring, over ours and over MPICH's library: an hour, and two gigabytes.
# `make foreign-files OPTIONS='--only hdf5'` runs a part; `OPTIONS=--update` writes the table of docs/figures/foreign.md.
.PHONY: foreign-files
foreign-files: stage
	@scripts/needs.sh cc c++ python3 gfortran autoreconf automake libtoolize m4 zlib.h
	@scripts/peers.sh >/dev/null
	@python3 tests/foreign-files/run.py --prefix build $(OPTIONS)

# Pages of results, in headless Chromium where there is one.
report: stage
	@python3 tests/all.py report

# Jobs over ssh; those that the launchers of others start: MPICH's and Intel's mpiexec, prterun, mpirun, and Slurm's srun, on one host and on
# two; and our mpiexec in allocations of Slurm and Grid Engine. It fetches the wheels, installs Slurm and OpenSSH, and unpacks Grid Engine
# into build/.
.PHONY: test-launchers
test-launchers: stage
	@scripts/needs.sh cc ip
	@python3 tests/launchers/run.py --prefix build $(OPTIONS)
	@python3 tests/launchers/ssh.py --prefix build
	@python3 tests/launchers/allocation.py --prefix build
	@python3 tests/launchers/moments.py --prefix build

# A part of the suites of others, and the whole.
.PHONY: foreign
foreign: stage
	@python3 tests/all.py mpi4py mpich mpich-gfortran

foreign-all: stage
	@python3 tests/all.py --all mpi4py mpich mpich-gfortran mpich-flang-new-19

# Clippy reads the code for the other kind of processor, so that one pass shows that it compiles there and finds what is wrong with it
# anywhere; a second pass reads the libraries with code for this kind alone, and the tests are compiled for this kind anyway. Without the
# other standard library one pass reads all for this one.
X86_64_ALONE := -p clocks -p datatype

lint: begin
	@python3 tests/readme.py --check
	@python3 tests/mutants/run.py --check
	$(CARGO) fmt --check
	@if $(std_aarch64); then \
	  set -x; $(CARGO) clippy --workspace --all-targets --quiet --target $(AARCH64) -- -D warnings && \
	  $(CARGO) clippy $(X86_64_ALONE) --lib --quiet -- -D warnings; \
	else $(call not_run,lint for aarch64,no standard library for $(AARCH64) here and rustup could not fetch it); \
	  $(CARGO) clippy --workspace --all-targets --quiet -- -D warnings; fi

# Licences, sources and known faults of libraries, where cargo-deny is installed (cargo install cargo-deny); hosted CI always checks them.
.PHONY: deny
deny:
	$(CARGO) deny --log-level error check

# Ten thousand random programs on modelled machines under random faults, and as many on machines with several rails,
# which fail and come back; as many of one-sided communication there, in shared memory, by devices of the test and over TCP; then a
# thousand cases of the loss of the last path. A seed that fails is the last one printed:
# `SEED=n make simulate` runs it alone. `FIRST_SEED=n` leaves out the seeds before n.
simulate:
	SEEDS=$${SEEDS:-10000} $(CARGO) test --release -p mpi --test it simulated -- --nocapture --test-threads=1
	SEEDS=$${SEEDS:-10000} $(CARGO) test --release -p mpi --test it random_windows -- --nocapture --test-threads=1
	SEEDS=$${SEEDS:-1000} $(CARGO) test --release -p mpi --test it last_path -- --nocapture --test-threads=1

# Every choice that a setting can force, at all lengths, on eight machines whose primitives have fixed prices: some minutes.
.PHONY: machines
machines:
	$(CARGO) test --release -p mpi --test it all_lengths_on_all_machines -- --ignored --nocapture

# Every algorithm of every collective on many modelled machines, for hours: docs/figures/collectives-choice.md.
.PHONY: choices
choices: stage
	python3 tests/choice/run.py --whole --page docs/figures/collectives-choice.md --keep build/choices.json
	python3 tests/protocols/run.py --prefix build --streams --programs --derived --page docs/figures/messages-choice.md

# Every parser of bytes that others write, under libFuzzer, each for FUZZ_SECONDS; then the share of its lines that was reached.
# `make fuzz OPTIONS='--only frames --keep'` runs one and keeps its inputs. A target is a file of crates/checks/fuzzed.
FUZZ_SECONDS ?= 60
.PHONY: fuzz
fuzz: needs
	@python3 tests/fuzz/run.py --seconds $(FUZZ_SECONDS) --coverage $(OPTIONS)

# Removes each rule of failover in turn, and says which test notices it.
mutants:
	python3 tests/mutants/run.py

# Draws faults in production code, compiles them at once, and says which test finds each: OPTIONS='--seed 7 --count 40' for others.
.PHONY: faults
faults: needs
	python3 tests/mutants/schemata.py $(OPTIONS)

# Measurements, which give figures and no verdicts: `make measurements` lists them, `make measure-tcp OPTIONS='--only rails'` makes one.
.PHONY: measurements
measurements:
	@sed -n 's/^| \[\(.*\)\](\.\.\/measurements[^)]*) | \(.*\) |$$/\1: \2/p' tests/README.md

measure-%: stage
	@python3 $(or $(firstword $(wildcard $(foreach name,run measure figures mpi_beside,measurements/$*/$(name).py))),$(error there is no measurement $*: see make measurements)) $(OPTIONS)

# The table of docs/figures/performance.md, measured here and now.
bench: stage
	build/bin/fishplate bench table --against "$$(scripts/peers.sh)" --markdown docs/figures/performance.md

# The table of docs/figures/simulator.md, measured here and now. Some minutes; `HUGE=--huge` adds 11,664 ranks, the most of three levels of switches with 36 ports.
bench-simulator: stage
	$(CARGO) build --release -p mpi --example simulated
	python3 measurements/simulator/run.py $(HUGE) --write docs/figures/simulator.md

# Several rails: `adaptive` against every static policy, unequal, many and slowed rails, on modelled machines. Some minutes.
.PHONY: rails-figures
rails-figures: stage
	@python3 measurements/rails/run.py

# Collectives, neighbourhoods and first messages beside MPICH and Intel MPI, on this machine, which must be otherwise idle. One to two
# hours; an interrupted run continues. `OPTIONS='--only allreduce --ranks 2'` measures a part.
.PHONY: collectives-figures
collectives-figures: stage
	@python3 measurements/collectives/run.py --against "$$(scripts/peers.sh)" $(OPTIONS)
