# The tree of files: `make stage` puts it into ./build, `make install PREFIX=/usr/local DESTDIR=` (mk/package.mk) there.
# The installed tree can be moved: commands find the rest from where they lie.

PREFIX  ?= /usr/local
DESTDIR ?=
CARGO   ?= cargo
INSTALL ?= install
OBJCOPY ?= objcopy
# The profiles of what was built: packages have others.
COMMAND_PROFILE ?= command
LIBRARY_PROFILE ?= lib

TARGET  := $(or $(CARGO_TARGET_DIR),target)
BUILT   := $(TARGET)$(addprefix /,$(CARGO_BUILD_TARGET))
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)

# The version of the standard, by which programs ask for MPI.
STANDARD := 5.0

# The archive of names that the ABI leaves out, by a C compiler and an archiver of the processor's kind, into a tree. Without them
# the tree is complete but for programs that declare these names themselves; mpicc sees that.
archive_of_names = { $(1) -O2 -fPIC -I$(3)/include -c crates/faces/abi/names.c -o $(3)/lib/names.o && \
	    rm -f $(3)/lib/libfishplate_names.a && $(2) rcs $(3)/lib/libfishplate_names.a $(3)/lib/names.o; } || \
	{ rm -f $(3)/lib/libfishplate_names.a; echo "libfishplate_names.a not made: $(1) or $(2) failed" >&2; }; \
	rm -f $(3)/lib/names.o

# The library of the names that work, for `mpicc -only-supported`: by a C compiler of the processor's kind, into a tree.
stub_of_supported = { mkdir -p $(2)/lib/supported && \
	    $(1) -O2 -fPIC -shared -s -Wl,-soname,libmpi_abi.so.1 -o $(2)/lib/supported/libmpi_abi.so crates/faces/abi/supported.c; } || \
	{ rm -rf $(2)/lib/supported; echo "supported/libmpi_abi.so not made: $(1) failed" >&2; }

# The libraries of older ABIs, from the folder where they were built into a tree.
old_abis = $(INSTALL) -d $(2)/lib/fishplate && for pair in mpich=libmpi.so.12 mpich_fortran=libmpifort.so.12 \
	    openmpi=libmpi.so.40 openmpi_cxx=libmpi_cxx.so.40 openmpi_fortran=libmpi_mpifh.so.40; do \
	    $(INSTALL) -m 755 $(1)/libfishplate_$${pair%%=*}.so $(2)/lib/fishplate/$${pair\#*=} || exit 1; done

# Further names of these libraries: Debian's, and those of Open MPI's modules. They are libraries that need the first one, with nothing of
# their own, by a C compiler of the processor's kind.
further_names = for pair in libmpich.so.12=libmpi.so.12 libmpichcxx.so.12=libmpi.so.12 libmpichfort.so.12=libmpifort.so.12 \
	    libmpi_usempi_ignore_tkr.so.40=libmpi_mpifh.so.40 libmpi_usempif08.so.40=libmpi_mpifh.so.40; do name=$${pair%%=*}; \
	    $(1) -shared -nostdlib -x c /dev/null -x none -Wl,-soname,$$name -Wl,-rpath,'$$ORIGIN',--enable-new-dtags,--no-as-needed \
	        $(2)/lib/fishplate/$${pair\#*=} -o $(2)/lib/fishplate/$$name || \
	    { rm -f $(2)/lib/fishplate/$$name; echo "$$name not made: $(1) failed" >&2; }; done

# The modules of a compiler that is named, `make install FC=gfortran`, built ahead into a tree. Whoever compiles with another one has
# them built then, in a folder of his own.
FORTRAN_COMPILER := $(if $(filter-out default undefined,$(origin FC)),$(FC))
modules_ahead = made=$$($(1)/lib/fishplate/fortran-modules --into $(1)/lib/fishplate/modules '$(FORTRAN_COMPILER)') && \
	    ln -sfn "$${made\#\#*/}" $(1)/lib/fishplate/modules/default

# The libraries of `fishplate record`.
RECORDERS := libfishplate_record.so libfishplate_record_large.so

# The libraries beside that of MPI: clocks, the recorder, and those of other ABIs.
OTHER_LIBRARIES := -p clocks -p recorder -p recorder_large -p fortran -p mpich_abi -p mpich_fortran -p openmpi_abi -p openmpi_cxx -p openmpi_fortran

# The Fortran bindings: the library, the sources of the modules, and the command that builds these for a compiler, from the folder where
# they were built into a tree.
fortran = $(INSTALL) -m 755 $(1)/libmpifort_abi.so $(2)/lib/libmpifort_abi.so.1 && \
	    ln -sfn libmpifort_abi.so.1 $(2)/lib/libmpifort_abi.so && rm -rf $(2)/share/fishplate/fortran && \
	    $(INSTALL) -d $(2)/share/fishplate/fortran $(2)/lib/fishplate && \
	    $(INSTALL) -m 644 $(1)/fortran/* $(2)/share/fishplate/fortran && \
	    $(INSTALL) -m 755 scripts/fortran-modules $(2)/lib/fishplate/fortran-modules

# The types of the launcher's symbols for debuggers (crates/job/launch/src/mpir.rs), under the names by which debuggers find them. Linkers
# would drop them with those names. Without objcopy there are the symbols alone.
for_debuggers := --rename-section .mpir_info=.debug_info --rename-section .mpir_abbrev=.debug_abbrev

.PHONY: stage tree first-tree files first-files library first-library command first-command

library: first-library
	$(CARGO) build --profile lib $(OTHER_LIBRARIES)

# The library of MPI and that of clocks: all that a program in C needs.
first-library:
	$(CARGO) rustc --profile lib -p abi --crate-type cdylib
	$(CARGO) build --profile lib -p clocks

# COMMAND_OPTIONS: more options of cargo, as for a command that is compiled for one run of the suites (.ci/run).
command:
	$(CARGO) build --profile command -p fishplate $(COMMAND_OPTIONS)

# The command with `compare` and without its feature `whole`. Cargo is told of the packages that it leaves out, because theirs are
# features of shared crates: then `command` compiles none of these again.
first-command:
	$(CARGO) build --profile command -p fishplate -p perf -p study --no-default-features --features fishplate/compare --bin fishplate

ROOT = $(CURDIR)/build

stage: tree
	@echo "installed into $(ROOT)"

tree: library command
	@$(MAKE) --no-print-directory files

# What `make demo` needs: no libraries of Fortran and of older ABIs, and a `fishplate` without study and perf.
first-tree: first-library first-command
	@$(MAKE) --no-print-directory first-files

# What is built, as a tree.
files: first-files
	@$(INSTALL) -m 755 $(addprefix $(BUILT)/$(LIBRARY_PROFILE)/,$(RECORDERS)) $(ROOT)/lib
	@for name in mpifort mpif90 mpif77 mpifort_abi; do ln -sfn mpicc $(ROOT)/bin/$$name || exit 1; done
	@$(call fortran,$(BUILT)/$(LIBRARY_PROFILE),$(ROOT))
	@$(call old_abis,$(BUILT)/$(LIBRARY_PROFILE),$(ROOT))
	@$(call further_names,$(CC),$(ROOT))
	@$(if $(FORTRAN_COMPILER),$(call modules_ahead,$(ROOT)))
	@for package in mpi-fort=$(STANDARD) mpifort_abi=$(VERSION); do \
	    sed -e "s/@NAME@/$${package%=*}/" -e "s/@VERSION@/$${package#*=}/" scripts/pkgconfig-fortran.in \
	        > $(ROOT)/lib/pkgconfig/$${package%=*}.pc || exit 1; done

first-files:
	@$(INSTALL) -d $(ROOT)/bin $(ROOT)/lib/pkgconfig $(ROOT)/include
	@$(OBJCOPY) $(for_debuggers) $(BUILT)/$(COMMAND_PROFILE)/fishplate $(ROOT)/bin/fishplate.new 2>/dev/null || \
	    $(INSTALL) -m 755 $(BUILT)/$(COMMAND_PROFILE)/fishplate $(ROOT)/bin/fishplate.new
	@mv $(ROOT)/bin/fishplate.new $(ROOT)/bin/fishplate
	@for name in mpiexec mpirun; do ln -sfn fishplate $(ROOT)/bin/$$name || exit 1; done
	@$(INSTALL) -m 755 scripts/mpicc $(ROOT)/bin/mpicc
	@sed -i 's/@VERSION@/$(VERSION)/' $(ROOT)/bin/mpicc
	@for name in mpicxx mpic++ mpicc_abi mpicxx_abi; do ln -sfn mpicc $(ROOT)/bin/$$name || exit 1; done
	@$(INSTALL) -m 755 $(BUILT)/$(LIBRARY_PROFILE)/libmpi_abi.so $(ROOT)/lib/libmpi_abi.so.1
	@for name in libmpi_abi.so libmpi_abi.so.0; do ln -sfn libmpi_abi.so.1 $(ROOT)/lib/$$name || exit 1; done
	@$(INSTALL) -m 755 $(BUILT)/$(LIBRARY_PROFILE)/libfishplate_clock.so $(ROOT)/lib/libfishplate_clock.so
	@$(INSTALL) -m 644 include/mpi.h $(ROOT)/include/mpi.h
	@$(call archive_of_names,$(CC),$(AR),$(ROOT))
	@$(call stub_of_supported,$(CC),$(ROOT))
	@names=; [ ! -e $(ROOT)/lib/libfishplate_names.a ] || names='-lfishplate_names '; \
	for package in mpi=$(STANDARD) mpi_abi=$(VERSION) fishplate=$(VERSION); do \
	    sed -e "s/@NAME@/$${package%=*}/" -e "s/@VERSION@/$${package#*=}/" -e "s/@NAMES@/$$names/" scripts/pkgconfig.in \
	        > $(ROOT)/lib/pkgconfig/$${package%=*}.pc || exit 1; done
