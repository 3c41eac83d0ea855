"""What programs that act for a person (coding agents) can ask: the tools of `nsysmap mcp`."""
