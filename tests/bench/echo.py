"""Echo servers for the websocket conformance suite, each as a process of its own.

    python -m tests.bench.echo relay|aiohttp

`relay` opens its websocket and reads from it as the relay does, with the relay's own functions; only the
answer is another, as an echo is no part of its protocol. `aiohttp` is the library with its defaults, which the
relay is to be held against. The first line of output is the port; the end of standard input ends the process.
"""

from __future__ import annotations

import asyncio
import socket
import sys

from aiohttp import WSMsgType, web

from app.relay.server.connection import open_socket, receive_message


async def _relay(request: web.Request) -> web.StreamResponse:
    ws = open_socket()
    await ws.prepare(request)
    while True:
        message = await receive_message(ws)
        if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
            return ws
        try:
            await ws.send_frame(message.data, message.type)
        except ConnectionError:
            return ws


async def _aiohttp(request: web.Request) -> web.StreamResponse:
    ws = web.WebSocketResponse()
    await ws.prepare(request)
    async for message in ws:
        try:
            if message.type is WSMsgType.TEXT:
                await ws.send_str(message.data)
            elif message.type is WSMsgType.BINARY:
                await ws.send_bytes(message.data)
        except ConnectionError:
            break
    return ws


async def main(kind: str) -> None:
    application = web.Application()
    application.add_routes([web.get("/", {"relay": _relay, "aiohttp": _aiohttp}[kind])])
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.SockSite(runner, listener).start()
    print(listener.getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
