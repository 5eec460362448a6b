# The other kind of processor, emulated by QEMU: the crates of libmpi_abi.so pass their tests there, and programs in C and Fortran built
# for it run on several ranks under this machine's launcher.

AARCH64 := aarch64-unknown-linux-gnu
EMULATE := qemu-aarch64 -L /usr/aarch64-linux-gnu
CROSS   := CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
           CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="$(EMULATE)"

# Succeeds if Rust's standard library for it is here or can be fetched.
std_aarch64 = ls "$$(rustc --print target-libdir --target $(AARCH64))"/libstd-* >/dev/null 2>&1 || timeout 120 rustup --quiet target add $(AARCH64)

# Tests that take many minutes under QEMU: those that make hundreds of modelled machines, each of which reserves 64 GiB of addresses,
# and those in which many threads wait for each other (the C programs have tests of that).
SLOW   := rdma::tests::it_keeps_the_promises_of_a_channel \
          collectives:: collectives_together:: counted:: explained:: simulated:: hca::
CRATES := knobs fabric datatype pmi sim device verbs model testdevice channel mpi

.PHONY: test-aarch64 library-aarch64

test-aarch64: stage
	@scripts/needs.sh cc python3 qemu-aarch64 aarch64-linux-gnu-gcc aarch64-linux-gnu-g++ aarch64-linux-gnu-gfortran
	@$(std_aarch64)
	$(CARGO) clippy --workspace --all-targets --quiet --target $(AARCH64) -- -D warnings
	SEEDS=10 $(CROSS) timeout 3600 $(CARGO) test --quiet --target $(AARCH64) --no-fail-fast --lib --test '*' \
	    $(addprefix -p ,$(CRATES)) -- $(addprefix --skip ,$(SLOW))
	@$(MAKE) --no-print-directory library-aarch64
	MPICC_CC=aarch64-linux-gnu-gcc MPICXX_CXX=aarch64-linux-gnu-g++ \
	    python3 tests/programs/run.py --prefix build/aarch64 --through "$(EMULATE)"
	python3 tests/fortran/run.py --prefix build/aarch64 --through "$(EMULATE)"

# The staged tree, with the other library.
library-aarch64:
	$(CROSS) $(CARGO) rustc --profile lib -p abi --crate-type cdylib --target $(AARCH64)
	$(CROSS) $(CARGO) build --profile lib $(OTHER_LIBRARIES) --target $(AARCH64)
	@$(INSTALL) -d build/aarch64/lib
	@cp -rfP build/bin build/include build/aarch64
	@$(INSTALL) -m 755 $(TARGET)/$(AARCH64)/lib/libmpi_abi.so build/aarch64/lib/libmpi_abi.so.1
	@ln -sfn libmpi_abi.so.1 build/aarch64/lib/libmpi_abi.so
	@$(INSTALL) -m 755 $(TARGET)/$(AARCH64)/lib/libfishplate_clock.so build/aarch64/lib/libfishplate_clock.so
	@$(INSTALL) -m 755 $(addprefix $(TARGET)/$(AARCH64)/lib/,$(RECORDERS)) build/aarch64/lib
	@$(call fortran,$(TARGET)/$(AARCH64)/lib,build/aarch64)
	@$(call old_abis,$(TARGET)/$(AARCH64)/lib,build/aarch64)
	@$(call further_names,aarch64-linux-gnu-gcc,build/aarch64)
	@$(call archive_of_names,aarch64-linux-gnu-gcc,aarch64-linux-gnu-ar,build/aarch64)
	@$(call stub_of_supported,aarch64-linux-gnu-gcc,build/aarch64)
