# Unsafe code under Miri, which checks every access to memory: datatypes (packing, buffers, reductions), and the channel's ring,
# collective buffers and lock over memory of the process (Miri has no shared mappings). Miri belongs to a nightly toolchain:
# `rustup toolchain install nightly --component miri,rust-src`. Buffers hold addresses as numbers, so provenance is permissive;
# the tests run fewer cases under cfg(miri).

MIRI_TOOLCHAIN ?= nightly
MIRI_FLAGS     := -Zmiri-permissive-provenance -Zmiri-disable-isolation
# The longest time of one crate's tests, in seconds.
MIRI_LIMIT     := 600
MIRI_TEST       = MIRIFLAGS='$(MIRI_FLAGS)' timeout $(MIRI_LIMIT) $(CARGO) +$(MIRI_TOOLCHAIN) miri test --target-dir $(TARGET)/miri --quiet

.PHONY: miri
miri: begin
	@if $(CARGO) +$(MIRI_TOOLCHAIN) miri --version >/dev/null 2>&1; then \
	  $(MIRI_TEST) -p channel --lib -- ring:: collective_buffer lock:: && $(MIRI_TEST) -p datatype; \
	else $(call not_run,miri,$(MIRI_TOOLCHAIN) has no Miri: rustup component add miri rust-src --toolchain $(MIRI_TOOLCHAIN)); fi
