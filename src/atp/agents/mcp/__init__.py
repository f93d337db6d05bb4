"""MCP servers whose tools prompt agents use."""
