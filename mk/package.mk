# Packages: `make install` and `make uninstall`, a Debian package, a wheel, a container image. All are copies of one image of the tree.

IMAGE := $(CURDIR)/build/image
DEB    = build/fishplate_$(VERSION)_$(shell dpkg --print-architecture 2>/dev/null).deb

# The wheel's binaries need this C library or a later one: RHEL 8 has it, which is the oldest system that others build wheels for.
# They are compiled apart, so that the ordinary build stays valid.
GLIBC   := 2.28
MACHINE := $(shell uname -m)
WHEEL    = build/fishplate-$(VERSION)-py3-none-manylinux_$(subst .,_,$(GLIBC))_$(MACHINE).whl
AT_WHEEL := $(CURDIR)/build/wheel
ZIG     := $(AT_WHEEL)/tools/bin/python-zig
ZIG_CC  := $(ZIG) cc -target $(MACHINE)-linux-gnu.$(GLIBC)
ZIGBUILD = PATH=$(AT_WHEEL)/tools/bin:$$PATH RUSTFLAGS='-C link-arg=$(AT_WHEEL)/gettid.o' CARGO_TARGET_DIR=$(AT_WHEEL)/target \
    CARGO_PROFILE_COMMAND_STRIP=none cargo-zigbuild

.PHONY: install uninstall image image-files deb wheel container may-install packages

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
	@$(IMAGE)/bin/fishplate man $(IMAGE)/share/man/man1
	@for name in fishplate mpiexec mpirun; do \
	    $(IMAGE)/bin/fishplate completions bash --for $$name > $(IMAGE)/share/bash-completion/completions/$$name && \
	    $(IMAGE)/bin/fishplate completions zsh --for $$name > $(IMAGE)/share/zsh/site-functions/_$$name && \
	    $(IMAGE)/bin/fishplate completions fish --for $$name > $(IMAGE)/share/fish/vendor_completions.d/$$name.fish || exit 1; done
	@$(INSTALL) -m 644 LICENSE-MIT LICENSE-APACHE README.md CHANGELOG.md $(IMAGE)/share/doc/fishplate
	@$(INSTALL) -d $(addprefix $(IMAGE)/share/doc/fishplate/docs/,user figures internals) $(IMAGE)/share/doc/fishplate/examples/kernels
	@$(INSTALL) -m 644 docs/*.svg $(IMAGE)/share/doc/fishplate/docs
	@for part in user figures internals; do \
	    $(INSTALL) -m 644 docs/$$part/*.md $(IMAGE)/share/doc/fishplate/docs/$$part || exit 1; done
	@$(INSTALL) -m 644 examples/*.c examples/*.f90 $(IMAGE)/share/doc/fishplate/examples
	@$(INSTALL) -m 644 examples/kernels/*.* $(IMAGE)/share/doc/fishplate/examples/kernels

deb: image
	@scripts/deb $(IMAGE) $(VERSION) $(DEB)

wheel:
	@scripts/needs.sh cc python3
	@scripts/wheel.py tools $(AT_WHEEL)/tools
	# Rust's standard library asks for `gettid` by a weak symbol, which this linker makes a strong one; glibc has it since 2.30.
	@printf '#include <sys/syscall.h>\nlong syscall(long, ...);\nint gettid(void) { return (int)syscall(SYS_gettid); }\n' | \
	    $(ZIG_CC) -O2 -fPIC -fvisibility=hidden -x c -c - -o $(AT_WHEEL)/gettid.o
	$(ZIGBUILD) rustc --target $(MACHINE)-unknown-linux-gnu.$(GLIBC) --profile lib -p abi --crate-type cdylib
	$(ZIGBUILD) zigbuild --target $(MACHINE)-unknown-linux-gnu.$(GLIBC) --profile lib $(OTHER_LIBRARIES)
	$(ZIGBUILD) zigbuild --target $(MACHINE)-unknown-linux-gnu.$(GLIBC) --profile command -p fishplate
	# Its linker can strip all symbols or none, and debuggers need some.
	@strip --strip-debug $(AT_WHEEL)/target/$(MACHINE)-unknown-linux-gnu/command/fishplate
	@$(MAKE) --no-print-directory image-files IMAGE=$(AT_WHEEL)/image BUILT=$(AT_WHEEL)/target/$(MACHINE)-unknown-linux-gnu \
	    CC='$(ZIG_CC)' AR='$(ZIG) ar'
	@scripts/strip-tree $(AT_WHEEL)/image
	@scripts/wheel.py library-0 $(AT_WHEEL)/image $(ZIG_CC)
	@scripts/wheel.py pack $(AT_WHEEL)/image $(VERSION) $(WHEEL)
	@$(AT_WHEEL)/tools/bin/python scripts/wheel.py check $(WHEEL)
	@echo $(WHEEL)

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
