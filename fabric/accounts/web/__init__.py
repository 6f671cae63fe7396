"""Pages: a request becomes one call, the answer a page."""
