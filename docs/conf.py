"""The documentation as a site: `make docs` builds it from the root of the repository, strictly."""

project = "stepcredit"
author = "The stepcredit authors"
copyright = f"{author}, MIT licence"

extensions = ["myst_parser"]
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**", "config/README.md", "results/README.md"]
exclude_patterns = [".*", "build", "src", "tests", "results/[!R]*"]

myst_heading_anchors = 3
nitpicky = True

html_theme = "alabaster"
html_theme_options = {"description": "RL on reasoning models, put to the test", "page_width": "60rem"}
html_show_sphinx = False
