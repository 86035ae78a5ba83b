"""Stage beside docs: the language server of editors (`engine lsp`), over the compiler of the commands."""
