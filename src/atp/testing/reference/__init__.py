"""The reference agent, in a folder of its own: as a script it must find no module of ATP beside it."""
