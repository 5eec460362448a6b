# Packages: `make install` and `make uninstall`, a Debian package, a container image. All three are copies of one image of the tree.

IMAGE := $(CURDIR)/build/image
DEB    = build/fishplate_$(VERSION)_$(shell dpkg --print-architecture 2>/dev/null).deb

.PHONY: install uninstall image deb container may-install packages

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
	@$(INSTALL) -d $(IMAGE)/share/doc/fishplate/docs $(IMAGE)/share/doc/fishplate/examples/kernels
	@$(INSTALL) -m 644 docs/*.md docs/*.svg $(IMAGE)/share/doc/fishplate/docs
	@$(INSTALL) -m 644 examples/*.c $(IMAGE)/share/doc/fishplate/examples
	@$(INSTALL) -m 644 examples/kernels/*.* $(IMAGE)/share/doc/fishplate/examples/kernels

deb: image
	@scripts/deb $(IMAGE) $(VERSION) $(DEB)

# With podman or docker, whichever runs here.
container:
	@for tool in podman docker; do \
	    if $$tool info >/dev/null 2>&1; then exec $$tool build -t fishplate -f Containerfile .; fi; \
	done; $(call not_run,container,neither podman nor docker runs here)

# Installs and removes all of these, each in a scratch root.
packages: stage
	@python3 tests/all.py --all packages
