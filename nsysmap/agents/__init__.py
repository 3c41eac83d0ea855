"""The tools of `nsysmap mcp`, for programs such as coding agents that act for a person."""
