# The documentation as pages with search, which load nothing from elsewhere: build/site/html.

.PHONY: site
site: stage
	@scripts/needs.sh python3
	@python3 scripts/site/build.py
