"""Tools for assistants over the Model Context Protocol (`engine mcp`).

In go calls of tools; out comes JSON of bounded size with secrets masked, made from `engine.api`. Start reading in
`tool_server`, which lists the tools.
"""
