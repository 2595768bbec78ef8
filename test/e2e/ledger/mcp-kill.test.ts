// A gateway that is killed during a call of a tool loses no row: the next process settles the call.
import { expect, it } from "vitest";
import { digestKey, mintKey } from "../../../src/lib/api-key.ts";
import { startDaemon } from "../../kit/process/daemon.ts";
import { killUntilExit } from "../../kit/process/program.ts";
import { until } from "../../kit/wait.ts";
import { sendModern } from "../../plugins/frontends/mcp/client.ts";
import { startFakeServer } from "../../plugins/frontends/mcp/fake-server.ts";

const { secret } = mintKey();

it("the row of a call during which the gateway is killed is settled by the next process", async () => {
  let calls = 0;
  await using server = await startFakeServer({
    revision: "2026-07-28",
    call: () => {
      calls++;
      return calls < 3 ? { content: [] } : undefined;
    },
  });
  const options = { servers: { one: { url: server.url, prices: { "*": "0.002" } } } };
  const yaml = `
frontends: [{ use: mcp, with: ${JSON.stringify(options)} }]
providers: { demo: { use: demo } }
middleware: [{ use: auth, with: { keys: [{ id: one, digest: ${digestKey(secret)} }] } }]
`;
  const first = await startDaemon({ yaml });
  const client = { url: `${first.url}/mcp/one`, key: secret };
  const call = () => sendModern(client, "tools/call", { name: "echo", arguments: { a: 1 } });
  expect((await call()).result).toBeDefined();
  expect((await call()).result).toBeDefined();
  const lost = call().catch(() => undefined);
  await until(() => calls === 3);
  await killUntilExit(first, "SIGKILL");
  await lost;
  await using second = await startDaemon({ yaml, dir: first.dir });
  const { items } = (await second.ask("ledger.entries", {})) as { items: Record<string, any>[] };
  const settled = items.filter(({ kind }) => kind === "settle");
  expect(items.filter(({ kind }) => kind === "reserve")).toHaveLength(3);
  expect(settled.map(({ outcome, state }) => [outcome, state])).toEqual([
    ["ok", "exact"],
    ["ok", "exact"],
    ["recovered", "estimated"],
  ]);
  const hashes = items.map(({ clientRequest }) => clientRequest?.argumentsHash).filter(Boolean);
  expect(new Set(hashes).size).toBe(1);
  expect(hashes[0]).toMatch(/^[0-9a-f]{32}$/);
  await second.stop();
});
