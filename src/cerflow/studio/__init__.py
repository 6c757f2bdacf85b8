"""The studio: a page in the browser to write queries, run them on a sample, and see why they match or do not.

`session` holds what the page shows and knows no browser. `server` serves the page on this machine alone. The other
modules are parts of the page.
"""
