// Gateways that are killed at any moment while tools are called: every call that reached the server
// has a row, every row is settled, and nothing stays open.
import { expect, it } from "vitest";
import { digestKey, mintKey } from "../../../src/lib/api-key.ts";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { killUntilExit } from "../../kit/process/program.ts";
import { turnEventLoop, until } from "../../kit/wait.ts";
import { openSession, sendModern } from "../../plugins/frontends/mcp/client.ts";
import { startFakeServer } from "../../plugins/frontends/mcp/fake-server.ts";

const { secret } = mintKey();
const KILLS = 12;
const CLIENTS = 6;

/** A generator of small numbers, the same in every run. */
function createRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

interface Entry {
  readonly kind: string;
  readonly attempt: string;
  readonly clientRequest?: { readonly argumentsHash?: string };
}

/** Returns all rows of the ledger. */
async function readRows(gateway: Daemon): Promise<readonly Entry[]> {
  const rows: Entry[] = [];
  let cursor: string | undefined;
  do {
    const input = { limit: 1_000, ...(cursor !== undefined && { cursor }) };
    const page = (await gateway.ask("ledger.entries", input)) as unknown as {
      items: Entry[];
      next?: string;
    };
    rows.push(...page.items);
    cursor = page.next;
  } while (cursor !== undefined);
  return rows;
}

it("no call of a killed gateway is without a row, and every row is settled", async () => {
  const random = createRandom(45);
  const received = new Set<unknown>();
  let count = 0;
  await using server = await startFakeServer({
    revision: "2025-11-25",
    async call({ args, res }) {
      received.add(args["n"]);
      count++;
      const behavior = random(4);
      if (behavior === 0) return void res.on("close", () => undefined);
      if (behavior === 1) await turnEventLoop(random(20));
      return { content: [{ type: "text", text: String(args["n"]) }] };
    },
  });
  const options = { servers: { one: { url: server.url, prices: { "*": "0.002" } } } };
  const yaml = `
frontends: [{ use: mcp, with: ${JSON.stringify(options)} }]
providers: { demo: { use: demo } }
middleware: [{ use: auth, with: { keys: [{ id: one, digest: ${digestKey(secret)}, limits: ["concurrent=${CLIENTS}"] }] } }, limits]
`;
  let gateway = await startDaemon({ yaml });
  try {
    let n = 0;
    for (let kill = 0; kill < KILLS; kill++) {
      const client = { url: `${gateway.url}/mcp/one`, key: secret };
      let isDead = false;
      const work = async (isSession: boolean) => {
        const session = isSession ? await openSession(client) : undefined;
        while (!isDead) {
          const params = { name: "echo", arguments: { n: n++ } };
          const sent = session
            ? session.send("tools/call", params)
            : sendModern(client, "tools/call", params);
          const answer = await sent;
          // Calls of the killed gateway do not count against the limit any more.
          expect(answer.error?.message ?? "").not.toContain("concurrent");
        }
      };
      const before = count;
      const problems: unknown[] = [];
      const clients = Array.from({ length: CLIENTS }, (_, at) =>
        work(at % 2 === 0).catch((problem: unknown) => void (isDead || problems.push(problem))),
      );
      const target = before + 1 + random(40);
      await until(() => count >= target || count >= before + CLIENTS);
      isDead = true;
      await killUntilExit(gateway, "SIGKILL");
      await Promise.all(clients);
      expect(problems).toEqual([]);
      gateway = await startDaemon({ yaml, dir: gateway.dir });
    }
    const rows = await readRows(gateway);
    const reserved = rows.filter(({ kind }) => kind === "reserve");
    const settled = rows.filter(({ kind }) => kind === "settle");
    expect(received.size).toBeGreaterThan(KILLS);
    // Each call has its own arguments, and so its own hash.
    const hashes = new Set(reserved.map(({ clientRequest }) => clientRequest?.argumentsHash));
    expect(hashes.size).toBeGreaterThanOrEqual(received.size);
    expect(count).toBe(received.size);
    expect(settled.map(({ attempt }) => attempt).toSorted()).toEqual(
      reserved.map(({ attempt }) => attempt).toSorted(),
    );
    await gateway.stop();
  } finally {
    await gateway[Symbol.asyncDispose]();
  }
}, 600_000);
