"""The studio: a page in the browser to write queries, run them on a sample, and see why they match or do not.

`session` holds what the page of a tab shows and knows no browser. `server` serves the page on this machine alone.
`panels` are the parts of the page.
"""
