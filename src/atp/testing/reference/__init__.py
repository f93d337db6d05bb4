"""The agent of the conformance test, in a folder of its own: as a script it must find nothing of ours beside it."""
