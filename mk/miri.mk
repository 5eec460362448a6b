# The unsafe code of datatypes (packing, buffers, reductions) under Miri, which checks every access to memory. Miri belongs to a
# nightly toolchain: `rustup toolchain install nightly --component miri,rust-src`. Buffers hold addresses as numbers, so provenance
# is permissive; the reference tests run fewer cases under cfg(miri).

MIRI_TOOLCHAIN ?= nightly
MIRI_FLAGS     := -Zmiri-permissive-provenance -Zmiri-disable-isolation

.PHONY: miri
miri: begin
	@if $(CARGO) +$(MIRI_TOOLCHAIN) miri --version >/dev/null 2>&1; then \
	  MIRIFLAGS='$(MIRI_FLAGS)' timeout 1800 $(CARGO) +$(MIRI_TOOLCHAIN) miri test -p datatype --target-dir $(TARGET)/miri --quiet; \
	else $(call not_run,miri,$(MIRI_TOOLCHAIN) has no Miri: rustup component add miri rust-src --toolchain $(MIRI_TOOLCHAIN)); fi
