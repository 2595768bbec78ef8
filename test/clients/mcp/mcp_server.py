# A server on the official Python SDK, with one tool. Argument: its port.
import sys

port = int(sys.argv[1])
try:
    from mcp.server.mcpserver import MCPServer

    server, run = MCPServer("python"), {"port": port}
except ImportError:
    from mcp.server.fastmcp import FastMCP

    server, run = FastMCP("python", port=port), {}


@server.tool()
def greet(name: str) -> str:
    """Greets somebody."""
    return f"Hello, {name}!"


server.run(transport="streamable-http", **run)
