"""Models: a request in, an answer out, over HTTP, from a local process or from a recording."""
