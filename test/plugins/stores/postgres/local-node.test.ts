// Conclusions of a gateway from its own row, which it reads on each new connection: the outcome of
// a batch whose response was lost, and the rows that a database that was set back lacks.
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it, vi } from "vitest";
import type { StoreEvent } from "../../../../src/plugin/store/store-instance.ts";
import { reserveCommand, settleCommand } from "../../../../src/testing/store.ts";
import type { PipelinedConnection } from "../../../../plugins/stores/postgres/connection/pipelined-connection.ts";
import { LocalNode } from "../../../../plugins/stores/postgres/local-node.ts";
import { settings } from "../postgres-under-test.ts";

afterEach(() => vi.useRealTimers());

const HEAD = Buffer.from("its newest batch");

/** A node with this many batches, ten seconds apart. */
async function written(many: number) {
  vi.useFakeTimers({ toFake: ["performance"] });
  const of = { ...settings("postgres://localhost/none"), usesPreparedStatements: true };
  const node = new LocalNode({ connectionCount: 1 } as PipelinedConnection, of);
  const news: StoreEvent[] = [];
  node.serverState.onEvent = (one) => void news.push(one);
  for (let n = 1; n <= many; n++) {
    node.position = { instance: "one", epoch: 1, n, head: HEAD };
    await node.saveForReplay([reserveCommand(`a${n}`)], [{ ok: true }]);
    vi.advanceTimersByTime(10_000);
  }
  /** The database is as it was after that batch. */
  const finds = (n: number, head = HEAD) =>
    node.syncPosition(async () => [{ n: String(n), head: `\\x${head.toString("hex")}` }]);
  return { node, news, finds };
}

it.each([
  { has: 20, owes: 0 },
  { has: 15, owes: 5 },
  { has: 13, owes: 7 },
  // More than a minute ago.
  { has: 12, owes: 7, lost: { from: 13, to: 20 } },
  { has: 0, owes: 7, lost: { from: 1, to: 20 } },
])(
  "of twenty batches the database has $has: $owes are sent again, and impossible ones are reported",
  async ({ has, owes, lost }) => {
    const { node, news, finds } = await written(20);
    await finds(has);
    expect(node.unsentBatches).toHaveLength(owes);
    expect(news).toEqual(lost ? [{ type: "rows_lost", instance: "one", ...lost }] : []);
    expect(node.position).toEqual({ instance: "one", epoch: 1, n: has, head: HEAD });
  },
);

it("a batch whose response was lost is committed exactly if the chain ends with it", async () => {
  const sent = Buffer.from("what was sent");
  for (const [head, happened] of [
    [sent, 1],
    [HEAD, 0],
  ] as const) {
    const { node, finds } = await written(2);
    const done = vi.fn();
    node.pendingBatch = { head: sent, done };
    await finds(2 + happened, head);
    expect(done).toHaveBeenCalledTimes(happened);
    expect([node.pendingBatch, node.unsentBatches]).toEqual([undefined, []]);
  }
});

it("does not end before the database has all sent rows: rows that it lost stay on disk", async () => {
  const { node } = await written(3);
  // The response arrives on a new connection: the row of this node is gone with everything else.
  await expect(node.replayBeforeLeave(async () => [])).rejects.toThrow("fenced");
  expect(node.isUnknownToDatabase).toBe(true);
  const { node: other } = await written(3);
  const asked: string[] = [];
  const breaks = async ({ text }: { text: string }) => {
    asked.push(text);
    if (asked.length > 1) throw new Error("it broke off");
    return [{ n: "1", head: `\\x${HEAD.toString("hex")}` }];
  };
  await expect(other.replayBeforeLeave(breaks)).rejects.toThrow("it broke off");
  expect(other.unsentBatches).toHaveLength(2);
});

it("keeps rows of an earlier number under a new one, for a database that is set back to before both", async () => {
  const { node, finds } = await written(3);
  const joined = async () => [{ epoch: "2" }];
  await node.join(joined, "one", undefined);
  expect(node.unsentBatches).toEqual([]);
  node.position = { instance: "one", epoch: 2, n: 1, head: HEAD };
  await node.saveForReplay([reserveCommand("b1")], [{ ok: true }]);
  await finds(0);
  expect(node.unsentBatches.flat().map((c) => "attempt" in c && c.attempt)).toEqual([
    "a1",
    "a2",
    "a3",
    "b1",
  ]);
});

it("an interrupted replay of another process's spool keeps its identity", async () => {
  const folder = await mkdtemp(join(tmpdir(), "tollgate-left-"));
  await mkdir(join(folder, "spool-two"));
  await writeFile(
    join(folder, "spool-two", "unsent"),
    `${JSON.stringify([settleCommand("a", { costNano: null })])}\n`,
  );
  const of = {
    ...settings("postgres://localhost/none"),
    usesPreparedStatements: true,
    spoolDir: () => folder,
  };
  const node = new LocalNode({ connectionCount: 1 } as PipelinedConnection, of);
  node.position = { instance: "one", epoch: 1, n: 3, head: HEAD };
  const breaks = async ({ text }: { text: string }) => {
    if (text.startsWith("SELECT epoch") || text.startsWith("UPDATE")) return [];
    if (text.startsWith("INSERT")) return [{ epoch: "7" }];
    throw new Error("it broke off");
  };
  await expect(node.replayLeftSpools(breaks, "one")).rejects.toThrow("it broke off");
  expect(node.position).toEqual({ instance: "one", epoch: 1, n: 3, head: HEAD });
  await rm(folder, { recursive: true });
});
