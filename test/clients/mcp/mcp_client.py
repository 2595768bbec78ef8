# A client on the official Python SDK: lists the tools of a server and calls one. Prints the result as
# JSON. Arguments: URL, key, generation of the client, name of the tool, and its arguments as JSON.
import asyncio
import json
import sys

from mcp import ClientSession
from mcp.client import streamable_http

url, key, era, tool, arguments = sys.argv[1:]
headers = {"Authorization": f"Bearer {key}"}


async def use(session, revision):
    tools = (await session.list_tools()).tools
    result = await session.call_tool(tool, json.loads(arguments))
    text = result.content[0].text
    print(json.dumps({"revision": revision, "tools": [one.name for one in tools], "text": text}))


async def with_session(streams):
    async with ClientSession(streams[0], streams[1]) as session:
        opened = await session.initialize()
        revision = getattr(opened, "protocol_version", None) or opened.protocolVersion
        await use(session, revision)


async def main():
    older = getattr(streamable_http, "streamablehttp_client", None)
    if older:
        async with older(url, headers=headers) as streams:
            return await with_session(streams)
    http = streamable_http.create_mcp_http_client(headers=headers)
    transport = streamable_http.streamable_http_client(url, http_client=http)
    if era == "session":
        async with transport as streams:
            return await with_session(streams)
    from mcp.client import Client

    async with Client(transport) as client:
        await use(client, client.protocol_version)


asyncio.run(main())
