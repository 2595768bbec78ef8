// An observer counts the requests of several processes exactly, in one place. It receives the
// gateway's own events, and clients notice neither its slowness nor its failure.
import { describe, expect, it } from "vitest";
import { askOnNewConnection, startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { until } from "../../kit/wait.ts";
import { NIGHTLY } from "../../kit/law-effort.ts";

/** Counts in a value that survives a reload, and reports its process. */
const COUNTER = `
import { defineObserver } from "tollgate/plugin";
export default defineObserver({
  api: 1, name: "counter", summary: "Counts requests", sends: "nowhere",
  options: { type: "object", additionalProperties: false, properties: { note: { type: "string", description: "Nothing" } } },
  setup: (_options, ctx) => {
    const seen = ctx.shared("seen", () => ({ ids: [], statuses: {}, keys: [], cost: 0n, output: 0, calls: 0, pids: [], most: 0, notices: [], away: [] }));
    return {
      onRequests(batch) {
        seen.most = Math.max(seen.most, batch.length);
        if (!seen.pids.includes(process.pid)) seen.pids.push(process.pid);
        for (const { id, status, key, calls } of batch) {
          seen.ids.push(id);
          seen.statuses[status] = (seen.statuses[status] ?? 0) + 1;
          if (key && !seen.keys.includes(key)) seen.keys.push(key);
          for (const call of calls) {
            seen.calls++;
            seen.cost += call.costNano ?? 0n;
            seen.output += call.usage.output ?? 0;
          }
        }
      },
      onRejected: (batch) => void seen.away.push(...batch.map(({ id, status, code }) => id + " " + status + " " + code)),
      // The broken observer is quarantined when it has failed often, which may be before or after a step of this test.
      onEvent(notice) { if (notice.type !== "quarantined") seen.notices.push(notice.type === "reloaded" ? notice.type + " " + notice.ok : notice.type); },
      commands: { counts: { summary: "What was counted", run: async () => ({ ...seen, ids: new Set(seen.ids).size, told: seen.ids.length, cost: String(seen.cost) }) } },
    };
  },
});
`;
/** Fails slowly at each batch. */
const BROKEN = `
export default { "~tollgate": "observer", api: 1, name: "broken", summary: "Fails", sends: "nowhere",
  setup: () => ({ async onRequests() { for (let n = 0; n < 1000; n++) await new Promise(setImmediate); throw new Error("no luck"); }, onEvent() { throw new Error("nor here"); } }) };
`;

interface Counts {
  ids: number;
  told: number;
  statuses: Record<string, number>;
  keys: string[];
  pids: number[];
  cost: string;
  output: number;
  calls: number;
  most: number;
  notices: string[];
  /** Requests rejected before routing. */
  away: string[];
}
const counts = async (gateway: Daemon) =>
  (await gateway.ask("observers.counter/counts")) as unknown as Counts;

/** Counts are up to 0.2 s late. */
async function settled(gateway: Daemon, told: number): Promise<Counts> {
  let now = await counts(gateway);
  await until(async () => (now = await counts(gateway)).told >= told);
  return now;
}

const yaml = (workers: number, note = "") => `workers: ${workers}
# A busy machine rejects no request of this test.
overload: { max_queue_wait: 60s }
frontends: [chat-completions]
observers: [{ use: ./counter.ts, with: { note: "${note}" } }, ./broken.mjs]
providers: { demo: { use: demo } }
`;

describe.each(NIGHTLY ? [1, 2] : [2])("with %i processes, an observer", (workers) => {
  it("receives every request once, across a reload, in the primary only", async () => {
    await using gateway = await startDaemon({
      yaml: yaml(workers),
      files: { "counter.ts": COUNTER, "broken.mjs": BROKEN },
    });
    const round = async () => {
      const statuses = await Promise.all([
        ...Array.from({ length: 30 }, () => askOnNewConnection(gateway, "demo/echo")),
        ...Array.from({ length: 6 }, () => askOnNewConnection(gateway, "demo/echo", "tg_nobody")),
        ...Array.from({ length: 4 }, () => askOnNewConnection(gateway, "nowhere/at-all")),
      ]);
      expect(statuses.filter((status) => status === 200)).toHaveLength(30);
    };
    await round();
    // No frontend received them, and they are reported nevertheless, with the IDs in their
    // responses.
    const lost = await Promise.all(
      Array.from({ length: 8 }, () =>
        fetch(`${gateway.url}/v1/nowhere`, { headers: { connection: "close" } }),
      ),
    );
    const away = lost.map(
      ({ status, headers }) => `${headers.get("x-request-id")} ${status} unknown_path`,
    );
    await gateway.write(yaml(workers, "again"));
    await gateway.line(({ msg }) => msg === "reloaded");
    await round();
    const now = await settled(gateway, 80);
    expect(now).toMatchObject({
      told: 80,
      ids: 80,
      statuses: { 200: 60, 401: 12, 404: 8 },
      calls: 60,
      pids: [gateway.pid],
      notices: ["key", "reloaded true"],
    });
    await until(async () => (await counts(gateway)).away.length >= 8);
    expect((await counts(gateway)).away.toSorted()).toEqual(away.toSorted());
    expect(now.keys).toHaveLength(1);
    expect(now.most).toBeGreaterThan(1);
    // Ledger rows of the same calls.
    const { total } = (await gateway.ask("ledger.totals", { by: ["model"] })) as unknown as {
      total: { calls: number; costNano: unknown; usage: { output: number } };
    };
    expect([now.calls, now.output, now.cost]).toEqual([
      total.calls,
      total.usage.output,
      String(total.costNano),
    ]);
    // A failing observer is logged, with no other effect.
    await gateway.line(
      ({ msg, plugin }) => msg === "observer failed" && plugin === "observers.broken",
    );

    let told = 80;
    const notices = ["key", "reloaded true"];
    if (workers > 1) {
      // It is notified of an exited worker, and continues to count for its successor.
      const status = (await gateway.ask("status")) as unknown as { workers: { pid: number }[] };
      process.kill(status.workers[0]!.pid, "SIGKILL");
      await gateway.line(({ msg }) => msg === "worker replaced");
      await round();
      told += 40;
      notices.push("worker_exited");
      expect(await settled(gateway, told)).toMatchObject({ told, notices });
    }

    await gateway.write("providers: {");
    await gateway.line(({ msg }) => msg.startsWith("reload rejected"));
    expect((await settled(gateway, told)).notices).toEqual([...notices, "reloaded false"]);
    expect(await gateway.stop()).toBe(0);
  });
});
