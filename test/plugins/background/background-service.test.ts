// Background responses of several processes with one store and one folder: each of them serves every
// response, one that stops is replaced, and nothing is left behind.
import { mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, expect, it, vi } from "vitest";
import { getFault, type JobStore, type RequestHead, type RouteResponse } from "tollgate/plugin";
import { createMemoryJobs } from "tollgate/store";
import { createTestContext } from "tollgate/testing";
import { BackgroundService } from "../../../plugins/frontends/background/background-service.ts";
import type { BackgroundRun, Json } from "tollgate/plugin";
import { ResponseFiles } from "../../../plugins/frontends/background/response-files.ts";
import { ResponseStreams } from "../../../plugins/frontends/background/response-streams.ts";
import { createResponseKind } from "../../../plugins/frontends/background/response-kind.ts";
import { until } from "../../kit/wait.ts";

const dir = mkdtempSync(join(tmpdir(), "tollgate-background-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const logsOf = (folder: string): string[] => readdirSync(join(folder, "responses"));

let jobs: JobStore;
/** Keys that are still valid, by their digest. */
let validKeys: Set<string>;
beforeEach(() => {
  jobs = createMemoryJobs();
  validKeys = new Set(["digest"]);
});

/** A process of a gateway. */
function startProcess(folder = dir): BackgroundService {
  const { ctx } = createTestContext({ jobs, stateDir: folder });
  const keys = {
    ...ctx.keys,
    read: async () => ({}) as never,
    findByDigest: (digest: string) => (validKeys.has(digest) ? ({} as never) : undefined),
  };
  const files = new ResponseFiles(ctx, folder);
  const options = {
    files,
    streams: new ResponseStreams(),
    keepMs: 60_000,
    maxResponseBytes: 100_000,
    maxResponses: 50,
  };
  return new BackgroundService({ ...ctx, keys }, options);
}

const request = (query = ""): RequestHead =>
  ({
    id: "req",
    identity: { id: "alice", account: "acme", digest: "digest" },
    query: new URLSearchParams(query),
  }) as never;

/** A response that a process runs. */
interface Running {
  readonly id: string;
  readonly run: BackgroundRun;
  say(text: string): Promise<void>;
  end(isTruncated?: boolean): Promise<void>;
}

async function start(of: BackgroundService): Promise<Running> {
  const run = of.begin(request(), { model: "fast", input: "Hi" }).background!;
  const { id } = (await run.accept()).body as { readonly id: string };
  const event = (type: string, more: object) => run.onEvent(JSON.stringify({ type, ...more }));
  return {
    id,
    run,
    say: (delta) => event("response.output_text.delta", { delta }),
    async end(isTruncated = false) {
      if (!isTruncated)
        await event("response.completed", { response: { id: "theirs", status: "completed" } });
      await run.onEnd({ isTruncated, error: undefined });
    },
  };
}

const read = async (of: BackgroundService, id: string, query = ""): Promise<RouteResponse> =>
  of.read(request(query), (await of.find(request(), id))!);
const statusOf = async (of: BackgroundService, id: string) =>
  ((await read(of, id)).body as { readonly status: string }).status;

async function collect({ body }: RouteResponse): Promise<string[]> {
  const deltas: string[] = [];
  for await (const text of body as AsyncIterable<string>)
    for (const [, json] of text.matchAll(/^data: (.*)$/gm)) {
      const { type, delta } = JSON.parse(json!) as { type: string; delta?: string };
      deltas.push(delta ?? type);
    }
  return deltas;
}

it("a process follows the stream of another one, and reads its response", async () => {
  const [one, other] = [startProcess(), startProcess()];
  const running = await start(one);
  await running.say("a");
  const following = collect(await read(other, running.id, "stream=true"));
  const resumed = collect(await read(other, running.id, "stream=true&starting_after=0"));
  expect(await statusOf(other, running.id)).toBe("in_progress");
  await running.say("b");
  await running.end();
  expect(await following).toEqual(["a", "b", "response.completed"]);
  expect(await resumed).toEqual(["b", "response.completed"]);
  expect(await statusOf(other, running.id)).toBe("completed");
  const stored = (await other.find(request(), running.id))!;
  await other.delete(stored);
  expect(await one.find(request(), running.id)).toBe(undefined);
  expect(logsOf(dir)).toEqual([]);
});

it("a response is canceled through another process, and its lease is renewed", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  try {
    const [one, other] = [startProcess(), startProcess()];
    const running = await start(one);
    vi.advanceTimersByTime(10_000);
    await until(async () => (await other.find(request(), running.id))!.record.version === 2);
    const canceling = other.cancel(request(), running.id);
    const kind = createResponseKind(other);
    await until(async () => {
      const { items } = await jobs.list({ kind: "response" });
      return kind.describe(items[0]!)!.status === "canceling";
    });
    vi.advanceTimersByTime(10_000);
    await until(() => running.run.signal.aborted);
    await running.end(true);
    expect(await canceling).toMatchObject({ id: running.id, status: "cancelled" });
    const { items } = await jobs.list({ kind: "response" });
    expect(kind.describe(items[0]!)).toMatchObject({
      id: running.id,
      status: "canceled",
      event: "response.cancelled",
      origin: { request: "req" },
    });
    await other.delete((await other.find(request(), running.id))!);
  } finally {
    vi.useRealTimers();
  }
});

it("a response whose key was revoked is stopped", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  try {
    const one = startProcess();
    const running = await start(one);
    validKeys.clear();
    vi.advanceTimersByTime(10_000);
    await until(() => running.run.signal.aborted);
    await running.end(true);
    const { body } = await read(one, running.id);
    expect(body).toMatchObject({ status: "failed" });
    expect(JSON.stringify(body)).toContain("revoked");
    await one.delete((await one.find(request(), running.id))!);
  } finally {
    vi.useRealTimers();
  }
});

it("a response fails if its process stopped, which cannot end it later", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  try {
    const [one, other] = [startProcess(), startProcess()];
    const running = await start(one);
    await running.say("a");
    const following = collect(await read(other, running.id, "stream=true"));
    vi.setSystemTime(Date.now() + 61_000);
    expect(await statusOf(other, running.id)).toBe("failed");
    expect(await following).toEqual(["a", "response.failed"]);
    const { body } = await read(other, running.id);
    expect((body as { error: Json }).error).toEqual({
      code: "server_error",
      message: "The gateway that ran this response stopped before it was complete.",
    });
    await running.end();
    expect(await statusOf(other, running.id)).toBe("failed");
    vi.setSystemTime(Date.now() + 61_000);
    await other.sweep();
    expect(await other.find(request(), running.id)).toBe(undefined);
    expect(logsOf(dir)).toEqual([]);
  } finally {
    vi.useRealTimers();
  }
});

it("a sweep ends responses of stopped processes, and deletes expired ones", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  try {
    const [one, other] = [startProcess(), startProcess()];
    const [lost, done] = [await start(one), await start(one)];
    await done.end();
    await other.sweep();
    expect(await statusOf(other, done.id)).toBe("completed");
    vi.setSystemTime(Date.now() + 60_001);
    await other.sweep();
    expect(await other.find(request(), done.id)).toBe(undefined);
    expect(await statusOf(other, lost.id)).toBe("failed");
    vi.setSystemTime(Date.now() + 60_001);
    await other.sweep();
    expect(logsOf(dir)).toEqual([]);
    expect((await jobs.list({})).items).toEqual([]);
    await lost.run.onEnd({ isTruncated: true, error: undefined });
  } finally {
    vi.useRealTimers();
  }
});

it("a gateway without the folder says so, and an owner has a limited number of streams", async () => {
  const one = startProcess();
  const running = await start(one);
  const elsewhere = startProcess(mkdtempSync(join(dir, "other-")));
  const failed = await read(elsewhere, running.id).catch((error: unknown) => error);
  expect(getFault(failed)).toMatchObject({ kind: "unavailable", code: "response_elsewhere" });
  const streams = [];
  for (let n = 0; n < 100; n++) streams.push(collect(await read(one, running.id, "stream=true")));
  const more = await read(one, running.id, "stream=true").catch((error: unknown) => error);
  expect(getFault(more)).toMatchObject({ kind: "rate_limited", code: "too_many_streams" });
  await running.say("a");
  await running.end();
  for (const stream of await Promise.all(streams))
    expect(stream).toEqual(["a", "response.completed"]);
  expect(await collect(await read(one, running.id, "stream=true"))).toHaveLength(2);
  await one.delete((await one.find(request(), running.id))!);
});

it("logs without a record are deleted after a day, and no other file", async () => {
  const one = startProcess();
  const running = await start(one);
  const [old, recent] = ["o".repeat(32), "r".repeat(32)];
  for (const name of [old, recent]) writeFileSync(join(dir, "responses", name), "x");
  const twoDaysAgo = Date.now() / 1_000 - 172_800;
  for (const name of [old, running.id.slice("resp_".length)])
    utimesSync(join(dir, "responses", name), twoDaysAgo, twoDaysAgo);
  await one.deleteOrphans();
  expect(logsOf(dir).toSorted()).toEqual([running.id.slice("resp_".length), recent].toSorted());
  rmSync(join(dir, "responses", recent));
  await running.end();
  expect(await statusOf(one, running.id)).toBe("completed");
  await one.delete((await one.find(request(), running.id))!);
});
