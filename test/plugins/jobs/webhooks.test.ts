// Webhooks: each end of a job is accepted once by each of its receivers, whatever fails.
import { OpenAI } from "openai";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import fc from "fast-check";
import type { EndedJob, JobRecord } from "tollgate/plugin";
import { createTestContext } from "tollgate/testing";
import {
  isReceiver,
  Webhooks,
  type WebhookOptions,
} from "../../../plugins/frontends/jobs/reports/webhooks.ts";
import { createMemoryJobs } from "../../../src/store/job-table.ts";
import { trialCount } from "../../kit/law-effort.ts";

const NOON = Date.UTC(2026, 10, 1, 12);
const secret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
const receiver = (more: Partial<WebhookOptions> = {}): WebhookOptions => ({
  url: "https://app.example.com/hooks?token=private",
  secret,
  ...more,
});

beforeEach(() => void vi.useFakeTimers({ now: NOON }));
afterEach(() => void vi.useRealTimers());

interface Received {
  readonly id: string;
  readonly body: string;
  readonly headers: Record<string, string>;
}

/** A store with jobs, and gateways that deliver to a receiver, which answers with `statuses`. */
function fleet(statuses: number[] = [], receivers: readonly WebhookOptions[] = [receiver()]) {
  const jobs = createMemoryJobs();
  const received: Received[] = [];
  const accepted: string[] = [];
  const fetch = async (_: string | URL, init: any = {}) => {
    const status = statuses.shift() ?? 200;
    if (status === 0)
      throw Object.assign(new Error("no connection to ?token=private"), { code: "ECONNRESET" });
    received.push({ id: init.headers["webhook-id"], body: init.body, headers: init.headers });
    if (status === 200) accepted.push(init.headers["webhook-id"]);
    return new Response(null, { status });
  };
  const startGateway = () => {
    const test = createTestContext({ jobs, fetch: fetch as never });
    const webhooks = new Webhooks(test.ctx, receivers);
    webhooks.start();
    return { webhooks, stop: () => test.end(), log: test.logs };
  };
  return { jobs, received, accepted, startGateway };
}

const jobOf = (id: string, more: Partial<EndedJob> = {}): EndedJob => ({
  record: id,
  id: `batch_${id}`,
  kind: "batch",
  key: "alice",
  createdAt: NOON,
  state: "completed",
  status: "completed",
  event: "batch.completed",
  endedAt: NOON + 1_500,
  ...more,
});
const recordOf = (id: string, version: number, state: string): JobRecord => ({
  id,
  kind: "batch",
  key: "alice",
  version,
  createdAt: NOON,
  state,
  data: "{}",
});
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

it("the SDK verifies the signature and reads the event", async () => {
  const { jobs, received, startGateway } = fleet();
  const { webhooks } = startGateway();
  await jobs.put(recordOf("a", 1, "running"));
  await webhooks.announce(jobOf("a"));
  await jobs.put(recordOf("a", 2, "completed"));
  await pass(5_000);
  expect(received).toHaveLength(1);
  const { body, headers } = received[0]!;
  const client = new OpenAI({ apiKey: "k" });
  expect(await client.webhooks.unwrap(body, headers, secret)).toEqual({
    id: expect.stringMatching(/^evt_/),
    object: "event",
    type: "batch.completed",
    created_at: Math.floor((NOON + 1_500) / 1_000),
    data: { id: "batch_a" },
  });
  await expect(client.webhooks.unwrap(`${body} `, headers, secret)).rejects.toThrow();
  expect((await jobs.list({ kind: "webhook" })).items).toEqual([]);
});

it("an event is not sent before the end of the job is written, and not at all if the job continues", async () => {
  const { jobs, received, startGateway } = fleet();
  const { webhooks } = startGateway();
  await jobs.put(recordOf("a", 1, "running"));
  await webhooks.announce(jobOf("a"));
  await pass(60_000);
  expect(received).toEqual([]);
  // Another gateway ended it in another way.
  await webhooks.announce(jobOf("a", { state: "failed", status: "failed", event: "batch.failed" }));
  await jobs.put(recordOf("a", 2, "failed"));
  await pass(60_000);
  expect(received.map(({ body }) => JSON.parse(body).type)).toEqual(["batch.failed"]);
});

it("failures are repeated with the same ID and growing delays, by another gateway too", async () => {
  const { jobs, received, accepted, startGateway } = fleet([500, 0, 302, 429, 200]);
  const first = startGateway();
  await jobs.put(recordOf("a", 1, "completed"));
  await first.webhooks.announce(jobOf("a"));
  await pass(8_000);
  await first.stop();
  startGateway();
  await pass(3_600_000);
  expect(accepted).toHaveLength(1);
  expect(new Set(received.map(({ id }) => id)).size).toBe(1);
  expect(received).toHaveLength(4);
  expect(JSON.stringify(first.log)).not.toContain("private");
});

it("a receiver that is gone gets one request, and one that never accepts is given up after 3 days", async () => {
  const gone = fleet([410]);
  await gone.jobs.put(recordOf("a", 1, "completed"));
  await gone.startGateway().webhooks.announce(jobOf("a"));
  await pass(3_600_000);
  expect(gone.received).toHaveLength(1);
  const broken = fleet(Array.from({ length: 1_000 }, () => 500));
  await broken.jobs.put(recordOf("a", 1, "completed"));
  await broken.startGateway().webhooks.announce(jobOf("a"));
  await pass(4 * 24 * 3_600_000);
  expect(broken.received.length).toBeLessThan(100);
  expect((await broken.jobs.list({ kind: "webhook" })).items).toEqual([]);
});

it("receivers are chosen by event, account, and key, and records contain no URL", async () => {
  const job = { key: "alice", account: "web", event: "batch.completed" };
  const matches = (more: Partial<WebhookOptions>) => isReceiver(receiver(more), job);
  expect(matches({})).toBe(true);
  expect(matches({ events: ["batch.*"], accounts: ["web"], keys: ["alice"] })).toBe(true);
  expect(matches({ events: ["response.*"] })).toBe(false);
  expect(matches({ accounts: ["other"] })).toBe(false);
  expect(matches({ keys: ["bob"] })).toBe(false);
  expect(isReceiver(receiver({ accounts: ["web"] }), { ...job, account: undefined })).toBe(false);
  expect(isReceiver(receiver(), { ...job, event: undefined })).toBe(false);
  const { jobs, startGateway } = fleet([500]);
  await jobs.put(recordOf("a", 1, "completed"));
  await startGateway().webhooks.announce(jobOf("a"));
  expect(JSON.stringify(await jobs.list({}))).not.toMatch(/private|whsec|example\.com/);
});

it("law: whatever fails and whichever gateway stops, each ended job is accepted once", async () => {
  const step = fc.oneof(
    fc.record({ type: fc.constant("end" as const), id: fc.nat(4) }),
    fc.record({ type: fc.constant("lost" as const), id: fc.nat(4) }),
    fc.record({ type: fc.constant("restart" as const) }),
    fc.record({ type: fc.constant("wait" as const), ms: fc.nat(20_000) }),
  );
  const statuses = fc.array(fc.constantFrom(0, 200, 302, 500, 503), { maxLength: 20 });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), statuses, async (steps, answers) => {
      vi.setSystemTime(NOON);
      const { jobs, accepted, received, startGateway } = fleet([...answers]);
      let gateway = startGateway();
      const ended = new Set<string>();
      for (const one of steps) {
        if (one.type === "wait") await pass(one.ms);
        else if (one.type === "restart") {
          await gateway.stop();
          gateway = startGateway();
        } else {
          const id = `j${one.id}`;
          if (ended.has(id)) continue;
          const before = await jobs.find(id);
          if (!before) await jobs.put(recordOf(id, 1, "running"));
          await gateway.webhooks.announce(jobOf(id));
          // The gateway stops before it writes the end.
          if (one.type === "lost") continue;
          await jobs.put(recordOf(id, (before?.version ?? 1) + 1, "completed"));
          ended.add(id);
        }
      }
      await pass(24 * 3_600_000);
      expect(accepted).toHaveLength(ended.size);
      expect(new Set(accepted).size).toBe(ended.size);
      const jobsOf = received.map(({ body }) => JSON.parse(body).data.id as string);
      expect([...new Set(jobsOf)].toSorted()).toEqual(
        [...ended].map((id) => `batch_${id}`).toSorted(),
      );
      await gateway.stop();
    }),
    { numRuns: trialCount(25) },
  );
});

it("delivers while jobs end more often than it looks for deliveries", async () => {
  const { jobs, accepted, startGateway } = fleet();
  const { webhooks } = startGateway();
  for (let count = 0; count < 40; count++) {
    const id = `job-${count}`;
    await jobs.put(recordOf(id, 1, "completed"));
    await webhooks.announce(jobOf(id));
    await pass(500);
  }
  expect(accepted.length).toBeGreaterThan(30);
});
