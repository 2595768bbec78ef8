// A relay that does nothing but forward: the measure for what the gateway adds. Run as a program of its
// own; it reports its port.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { WebSocket, WebSocketServer } from "ws";

const [upstream = ""] = process.argv.slice(2);
const server = createServer();
const wss = new WebSocketServer({ server, perMessageDeflate: false });
wss.on("connection", (client) => {
  const provider = new WebSocket(upstream, { perMessageDeflate: false });
  const waiting: { data: Buffer; binary: boolean }[] = [];
  client.on("message", (data: Buffer, binary: boolean) => {
    if (provider.readyState === provider.OPEN) provider.send(data, { binary });
    else waiting.push({ data, binary });
  });
  provider.on("open", () => {
    for (const { data, binary } of waiting) provider.send(data, { binary });
  });
  provider.on("message", (data: Buffer, binary: boolean) => client.send(data, { binary }));
  provider.on("error", () => client.terminate());
  client.on("error", () => {});
  client.on("close", () => provider.terminate());
  provider.on("close", () => client.close());
});
server.listen(0, "127.0.0.1", () =>
  process.send?.({ port: (server.address() as AddressInfo).port }),
);
process.on("disconnect", () => process.exit(0));
