# How long a user of Debian waits for the first answer.

.PHONY: fresh-debian

# Unpacks a fresh Debian (debootstrap, once), installs the package in it by apt, compiles an example, asks `compare`, and removes the package.
fresh-debian: deb
	@python3 tests/packages/fresh.py $(DEB)
