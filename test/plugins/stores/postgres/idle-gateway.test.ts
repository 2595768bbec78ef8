// An idle gateway checks for changes nevertheless: it learns of another one's changes within 1.5 s.
import { expect, it, vi } from "vitest";
import type {
  PipelinedConnection,
  SqlQuery,
  Row,
} from "../../../../plugins/stores/postgres/connection/pipelined-connection.ts";
import { createWriter } from "../../../../plugins/stores/postgres/writer.ts";
import { settings } from "../postgres-under-test.ts";

/** Duration of a response: a heartbeat that counts from its end is late for the next second. */
const TRIP_MS = 3;

it("the status is updated by each check, although responses arrive later", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "setTimeout", "performance"] });
  try {
    let beats = 0;
    const ask = async ({ text }: SqlQuery): Promise<readonly Row[]> => {
      await new Promise((resolve) => setTimeout(resolve, TRIP_MS));
      if (text.includes("RETURNING epoch")) return [{ epoch: "1" }];
      if (!text.includes("heartbeat_1")) return [];
      beats++;
      return [{ result: "true;0 0;0" }];
    };
    const line = {
      connectionCount: 1,
      isConnected: true,
      connect: async () => ask,
      disconnect() {},
      async close() {},
    } satisfies Pick<PipelinedConnection, keyof PipelinedConnection>;
    const writer = createWriter(line as unknown as PipelinedConnection, {
      ...settings("postgres://here/none"),
      clock: "database",
      usesPreparedStatements: true,
    });
    const open = writer.open({ instance: "one" }, () => {});
    await vi.advanceTimersByTimeAsync(50);
    await open;
    beats = 0;
    await vi.advanceTimersByTimeAsync(12_000);
    expect(beats).toBe(10);
    await writer.close(false);
  } finally {
    vi.useRealTimers();
  }
});
