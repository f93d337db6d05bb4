"""The index of a project's runs: a database that is made of the journals, and can be made again of them."""
