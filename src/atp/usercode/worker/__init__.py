"""What runs beside the user's agent, in our process or in a worker in an environment of its own.

These files need nothing but Python's standard library, from 3.8 on, and the framework that they drive. A worker loads
them under a name of their own, so they import each other relatively and nothing else of ours: the environment of an
agent may have another `atp` in it, or none.
"""
