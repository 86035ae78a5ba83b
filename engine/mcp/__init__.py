"""Stage beside lsp: tools for assistants over the Model Context Protocol (`engine mcp`), over the same API."""
