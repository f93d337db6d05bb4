"""Loads and calls the user's agents, in our own process or in a worker process in another environment.

These modules need only the standard library of Python 3.8 or newer, and the framework of the agent. A worker loads
them under another package name, so they use relative imports, and import nothing else of ATP: the environment of an
agent may have another version of `atp` installed, or none.
"""
