// Messages between gateways can only be read with the same secret.
import fc from "fast-check";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, it } from "vitest";
import {
  answerPeerRequest,
  PEER_PATH,
  PeerGateways,
  encryptMessage,
  decryptMessage,
} from "../../../src/runtime/services/peer-gateways.ts";
import type { InstanceState } from "../../../src/plugin/store/store-instance.ts";

const secret = Buffer.alloc(32, 7);
const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

it("any value is decoded unchanged; a modified value and another secret are rejected", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.nat(), fc.integer({ min: 1, max: 255 }), (value, at, flip) => {
      const bytes = encryptMessage(secret, value);
      expect(decryptMessage(secret, bytes)).toEqual({ value: JSON.parse(JSON.stringify(value)) });
      expect(decryptMessage(Buffer.alloc(32, 8), bytes)).toBeUndefined();
      const changed = Buffer.from(bytes);
      changed[at % changed.length]! ^= flip;
      expect(decryptMessage(secret, changed)).toBeUndefined();
      expect(decryptMessage(secret, bytes.subarray(0, at % bytes.length))).toBeUndefined();
    }),
  );
});

/** A gateway with this knowledge. */
async function node(known: Readonly<Record<string, unknown>>, own = secret): Promise<string> {
  const server = createServer(async (req, res) => {
    expect(req.url).toBe(PEER_PATH);
    const parts: Buffer[] = [];
    for await (const part of req) parts.push(part as Buffer);
    const answer = await answerPeerRequest(
      own,
      Buffer.concat(parts),
      (id, of) => known[`${id} ${String(of)}`],
    );
    res.writeHead(answer ? 200 : 404).end(answer);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

it("returns the first response, or all; gateways that are stopped, unaware, or have another secret are skipped", async () => {
  const urls = [
    await node({}),
    await node({ "items a": { text: "A" } }),
    await node({ "items b": "not ours" }, Buffer.alloc(32, 8)),
    "http://127.0.0.1:1",
    await node({ "items a": { text: "another A" } }),
  ];
  const instances = async (): Promise<InstanceState[]> => [
    ...urls.map((address, i): InstanceState => ({
      instance: `n${i}`,
      state: "live",
      lastHeartbeatAt: 0,
      info: { version: "1", host: "h", pid: 1, address },
    })),
    // The gateway itself, and one without an address.
    {
      instance: "me",
      state: "live",
      lastHeartbeatAt: 0,
      info: { version: "1", host: "h", pid: 1, address: "http://127.0.0.1:2" },
    },
    { instance: "early", state: "live", lastHeartbeatAt: 0 },
  ];
  const others = new PeerGateways({ listInstances: instances }, "me", secret);
  expect([{ text: "A" }, { text: "another A" }]).toContainEqual(
    await others.askFirst("items", "a"),
  );
  expect(await others.askFirst("items", "b")).toBeUndefined();
  expect(await others.askFirst("items", "a", true)).toBeUndefined();
  expect(await others.askAll("items", "a")).toEqual([{ text: "A" }, { text: "another A" }]);
  expect(await others.askAll("items", "b")).toEqual([]);
  expect(await new PeerGateways({}, "me", secret).askFirst("items", "a")).toBeUndefined();
});
