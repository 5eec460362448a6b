# The tree of files: `make stage` puts it into ./build, `make install PREFIX=/usr/local DESTDIR=` (mk/package.mk) there.
# The installed tree can be moved: commands find the rest from where they lie.

PREFIX  ?= /usr/local
DESTDIR ?=
CARGO   ?= cargo
INSTALL ?= install

TARGET  := $(or $(CARGO_TARGET_DIR),target)
BUILT   := $(TARGET)$(addprefix /,$(CARGO_BUILD_TARGET))
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)

.PHONY: stage tree library command

library:
	$(CARGO) rustc --profile lib -p abi --crate-type cdylib

command:
	$(CARGO) build --release -p fishplate

ROOT = $(CURDIR)/build

stage: tree
	@echo "installed into $(ROOT)"

tree: library command
	@$(INSTALL) -d $(ROOT)/bin $(ROOT)/lib/pkgconfig $(ROOT)/include
	@$(INSTALL) -m 755 $(BUILT)/release/fishplate $(ROOT)/bin/fishplate
	@for name in mpiexec mpirun; do ln -sfn fishplate $(ROOT)/bin/$$name || exit 1; done
	@$(INSTALL) -m 755 scripts/mpicc $(ROOT)/bin/mpicc
	@sed -i 's/@VERSION@/$(VERSION)/' $(ROOT)/bin/mpicc
	@for name in mpicxx mpic++ mpicc_abi mpicxx_abi; do ln -sfn mpicc $(ROOT)/bin/$$name || exit 1; done
	@$(INSTALL) -m 755 $(BUILT)/lib/libmpi_abi.so $(ROOT)/lib/libmpi_abi.so.1
	@for name in libmpi_abi.so libmpi_abi.so.0; do ln -sfn libmpi_abi.so.1 $(ROOT)/lib/$$name || exit 1; done
	@$(INSTALL) -m 644 include/mpi.h $(ROOT)/include/mpi.h
	@for name in mpi_abi fishplate; do \
	    sed -e 's/@NAME@/'$$name'/' -e 's/@VERSION@/$(VERSION)/' scripts/pkgconfig.in \
	        > $(ROOT)/lib/pkgconfig/$$name.pc || exit 1; done
