# Packages: `make install` and `make uninstall`, a Debian package, a wheel, a container image. All are copies of one image of the tree.

IMAGE := $(CURDIR)/build/image

# `make wheel MACHINE=aarch64` and `make deb MACHINE=aarch64` make packages for the other kind of processor. Its command makes the man
# pages, under QEMU.
HERE    := $(shell uname -m)
MACHINE := $(HERE)
FOREIGN  = $(filter-out $(HERE),$(MACHINE))
PROGRAMS_OF = $(if $(FOREIGN),$(MACHINE)-linux-gnu-)
THROUGH  = $(if $(FOREIGN),qemu-$(MACHINE) -L /usr/$(MACHINE)-linux-gnu)
FOREIGN_NEEDS = $(if $(FOREIGN),qemu-$(MACHINE) $(MACHINE)-linux-gnu-gcc)
DEBIAN_MACHINE = $(or $(patsubst x86_64,amd64,$(filter x86_64,$(MACHINE))),$(patsubst aarch64,arm64,$(filter aarch64,$(MACHINE))),$(MACHINE))
DEB      = build/fishplate_$(VERSION)_$(DEBIAN_MACHINE).deb

# The wheel's binaries need this C library or a later one: RHEL 8 has it, which is the oldest system that others build wheels for.
# They are compiled apart, so that the ordinary build stays valid.
GLIBC   := 2.28
WHEEL    = build/fishplate-$(VERSION)-py3-none-manylinux_$(subst .,_,$(GLIBC))_$(MACHINE).whl
AT_WHEEL := $(CURDIR)/build/wheel
WHEEL_IMAGE = $(AT_WHEEL)/$(MACHINE)
ZIG     := $(AT_WHEEL)/tools/bin/python-zig
ZIG_CC   = $(ZIG) cc -target $(MACHINE)-linux-gnu.$(GLIBC)
ZIG_TARGET = $(MACHINE)-unknown-linux-gnu
# Each C library since 2006 finds symbols by the hashes of GNU; those of System V would be 100,000 bytes of the wheel.
ZIG_LINK = -C link-arg=$(AT_WHEEL)/gettid-$(MACHINE).o -C link-arg=-Wl,--hash-style=gnu
ZIGBUILD = PATH=$(AT_WHEEL)/tools/bin:$$PATH CARGO_TARGET_DIR=$(AT_WHEEL)/target CARGO_PROFILE_PACKAGED_STRIP=none \
    RUSTFLAGS='$(ZIG_LINK)' cargo-zigbuild

.PHONY: install uninstall image image-files deb wheel wheel-image test-wheel container may-install packages

install: may-install image
	@scripts/install-tree copy $(IMAGE) $(DESTDIR)$(PREFIX)
	@echo "installed into $(DESTDIR)$(PREFIX)"
	@$(if $(DESTDIR),:,scripts/install-tree next $(PREFIX))

# Before minutes of compiling.
may-install:
	@scripts/install-tree check $(DESTDIR)$(PREFIX)

uninstall:
	@scripts/install-tree remove $(DESTDIR)$(PREFIX)
	@echo "removed from $(DESTDIR)$(PREFIX)"

# The tree with what only an installation needs: man pages, completions of shells, documents, examples, licences.
image: library command
	@$(MAKE) --no-print-directory image-files

image-files:
	@rm -rf $(IMAGE)
	@$(MAKE) --no-print-directory files ROOT=$(IMAGE)
	@$(INSTALL) -d $(IMAGE)/share/man/man1 $(IMAGE)/share/bash-completion/completions \
	    $(IMAGE)/share/zsh/site-functions $(IMAGE)/share/fish/vendor_completions.d $(IMAGE)/share/doc/fishplate
	@$(THROUGH) $(IMAGE)/bin/fishplate man $(IMAGE)/share/man/man1
	@for name in fishplate mpiexec mpirun; do \
	    $(THROUGH) $(IMAGE)/bin/fishplate completions bash --for $$name > $(IMAGE)/share/bash-completion/completions/$$name && \
	    $(THROUGH) $(IMAGE)/bin/fishplate completions zsh --for $$name > $(IMAGE)/share/zsh/site-functions/_$$name && \
	    $(THROUGH) $(IMAGE)/bin/fishplate completions fish --for $$name > $(IMAGE)/share/fish/vendor_completions.d/$$name.fish || exit 1; done
	@$(INSTALL) -m 644 LICENSE-MIT LICENSE-APACHE README.md CHANGELOG.md $(IMAGE)/share/doc/fishplate
	@$(INSTALL) -d $(addprefix $(IMAGE)/share/doc/fishplate/docs/,user figures internals) $(IMAGE)/share/doc/fishplate/examples/kernels
	@$(INSTALL) -m 644 docs/*.svg $(IMAGE)/share/doc/fishplate/docs
	@for part in user figures internals; do \
	    $(INSTALL) -m 644 docs/$$part/*.md $(IMAGE)/share/doc/fishplate/docs/$$part || exit 1; done
	@$(INSTALL) -m 644 examples/*.c examples/*.f90 $(IMAGE)/share/doc/fishplate/examples
	@$(INSTALL) -m 644 examples/kernels/*.* $(IMAGE)/share/doc/fishplate/examples/kernels

# With PORTABLE=1, and for the other kind of processor, it has the wheel's binaries, so it needs no newer C library than they do.
OF_WHEEL = $(or $(FOREIGN),$(PORTABLE))
deb: $(if $(OF_WHEEL),wheel-image,image)
	@STRIP=$(PROGRAMS_OF)strip scripts/deb $(if $(OF_WHEEL),$(WHEEL_IMAGE),$(IMAGE)) $(VERSION) $(DEBIAN_MACHINE) $(DEB)

wheel-image:
	@scripts/needs.sh cc python3 $(FOREIGN_NEEDS)
	@$(if $(FOREIGN),ls "$$(rustc --print target-libdir --target $(ZIG_TARGET))"/libstd-* >/dev/null 2>&1 || rustup --quiet target add $(ZIG_TARGET))
	@scripts/wheel.py tools $(AT_WHEEL)/tools
	# Rust's standard library asks for `gettid` by a weak symbol, which this linker makes a strong one; glibc has it since 2.30.
	@printf '#include <sys/syscall.h>\nlong syscall(long, ...);\nint gettid(void) { return (int)syscall(SYS_gettid); }\n' | \
	    $(ZIG_CC) -O2 -fPIC -fvisibility=hidden -x c -c - -o $(AT_WHEEL)/gettid-$(MACHINE).o
	$(ZIGBUILD) rustc --target $(ZIG_TARGET).$(GLIBC) --profile packaged-lib -p abi --crate-type cdylib
	$(ZIGBUILD) zigbuild --target $(ZIG_TARGET).$(GLIBC) --profile packaged-lib $(OTHER_LIBRARIES)
	$(ZIGBUILD) zigbuild --target $(ZIG_TARGET).$(GLIBC) --profile packaged -p fishplate
	# Its linker can strip all symbols or none, and debuggers need some.
	@$(PROGRAMS_OF)strip --strip-debug $(AT_WHEEL)/target/$(ZIG_TARGET)/packaged/fishplate
	@$(MAKE) --no-print-directory image-files IMAGE=$(WHEEL_IMAGE) BUILT=$(AT_WHEEL)/target/$(ZIG_TARGET) COMMAND_PROFILE=packaged LIBRARY_PROFILE=packaged-lib \
	    CC='$(ZIG_CC)' AR='$(ZIG) ar' OBJCOPY=$(PROGRAMS_OF)objcopy
	@STRIP=$(PROGRAMS_OF)strip scripts/strip-tree $(WHEEL_IMAGE)
	# Nothing unwinds in the command: its panics abort, and debuggers stop there only where MPIR says. The tables are a tenth of it.
	@$(PROGRAMS_OF)objcopy --remove-section=.eh_frame --remove-section=.eh_frame_hdr $(WHEEL_IMAGE)/bin/fishplate
	@scripts/wheel.py no-tables $(WHEEL_IMAGE)/bin/fishplate
	@scripts/wheel.py library-0 $(WHEEL_IMAGE) $(ZIG_CC)

wheel: wheel-image
	@$(AT_WHEEL)/tools/bin/python scripts/wheel.py pack $(WHEEL_IMAGE) $(VERSION) $(WHEEL)
	@$(AT_WHEEL)/tools/bin/python scripts/wheel.py check $(WHEEL)
	@echo $(WHEEL)

# Installs the wheel into fresh environments: on this machine, or for the other kind of processor in a root of it under QEMU.
test-wheel:
	@$(if $(FOREIGN),scripts/needs.sh python3 qemu-$(MACHINE)-static $(MACHINE)-linux-gnu-gcc)
	@python3 tests/packages/run.py --only $(if $(FOREIGN),$(MACHINE),'a wheel')

# With podman or docker, whichever runs here, from the package. Its base is the system of this machine, for whose C library the package
# was built; BASE names another image, as where Docker Hub cannot be reached. CONTAINER_OPTIONS: more options of `build`.
BASE ?= docker.io/library/$(shell . /etc/os-release && echo $$ID:$$VERSION_CODENAME)

container: deb
	@rm -rf build/container && mkdir build/container && cp $(DEB) build/container/fishplate.deb
	@for tool in podman docker; do \
	    if $$tool info >/dev/null 2>&1; then \
	        exec $$tool build $(CONTAINER_OPTIONS) --build-arg BASE=$(BASE) -t fishplate -f Containerfile build/container; fi; \
	done; $(call not_run,container,neither podman nor docker runs here)

# Installs and removes all of these, each in a scratch root.
packages: stage
	@python3 tests/all.py --all packages
