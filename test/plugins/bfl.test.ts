import { Agent } from "undici";
import { afterAll, describe, expect, it } from "vitest";
import bfl from "../../plugins/providers/bfl.ts";
import { createProviderClient } from "../../src/runtime/plugin-host/provider-client.ts";
import { getFault } from "../../src/model/error.ts";
import type { ModelEvent } from "../../src/model/event.ts";
import { collectResponse } from "../../src/model/response-collector.ts";
import type { ImageRequest } from "../../src/model/request.ts";
import type { Json } from "../../src/model/values.ts";
import type { Call } from "../../src/plugin/call.ts";
import type { NativeEndpoint } from "../../src/plugin/provider.ts";
import {
  createCallContext,
  createTestContext,
  deepFreeze,
  createEventGrammar,
  jsonResponse,
  startUpstream,
  type UpstreamRequest,
  type ScriptedRoutes,
  type TestUpstream,
} from "../../src/testing/index.ts";
import { png } from "../protocols/images/pictures.ts";
import { installTestClock } from "../kit/clock.ts";
import { turnEventLoop } from "../kit/wait.ts";

const agent = new Agent();
const opened: TestUpstream[] = [];
afterAll(async () => {
  await Promise.all(opened.map((u) => u.close()));
  await agent.close();
});

const PICTURE = png(40, 25);
const image = { headers: { "content-type": "image/png" }, body: PICTURE };

/**
 * The service: accepts a job, keeps it pending for some time, then serves the result at another
 * address.
 */
async function service(
  more: ScriptedRoutes | ((url: () => string) => ScriptedRoutes) = {},
): Promise<TestUpstream> {
  let jobs = 0;
  const url = () => u.url;
  const u: TestUpstream = await startUpstream({
    "POST *": () => {
      const id = `job-${++jobs}`;
      return jsonResponse({ id, polling_url: `${url()}/poll?id=${id}`, cost: 4, output_mp: 0.001 });
    },
    "GET /poll": [
      jsonResponse({ id: "x", status: "Pending", result: null }),
      () =>
        jsonResponse({ id: "x", status: "Ready", result: { sample: `${url()}/sample.png?sig=1` } }),
    ],
    "GET /sample.png": image,
    ...(typeof more === "function" ? more(url) : more),
  });
  opened.push(u);
  return u;
}

const wish = (more: Partial<ImageRequest> = {}): ImageRequest =>
  deepFreeze({
    operation: "image",
    model: "bfl/flux-pro-1.1",
    prompt: "A harbour",
    stream: false,
    n: 1,
    inputImages: [],
    responseFormat: "bytes",
    rest: {},
    ext: {},
    ...more,
  });

async function draw(
  u: TestUpstream,
  more: Partial<ImageRequest> = {},
  of: { model?: string; signal?: AbortSignal; timeout_s?: number; seen?: ModelEvent[] } = {},
) {
  const { model = "flux-pro-1.1", signal = new AbortController().signal, timeout_s = 30 } = of;
  const { endpoints } = await bfl.setup(
    { base_url: `${u.url}/v1`, timeout_s },
    createTestContext().ctx,
  );
  const endpoint = endpoints[0] as NativeEndpoint<{ api_key: string }, "image">;
  const credential = {
    name: "main",
    fields: { api_key: "secret-key" },
    weight: 1,
    models: undefined,
    zdr: undefined,
  };
  const line = createProviderClient({
    reach: endpoint as never,
    dispatcher: agent,
    credential,
    signal,
  });
  const losing = createCallContext({ model });
  const call = {
    ...losing,
    ...line,
    id: `bfl/${model}`,
    provider: "bfl",
    model,
    info: bfl.facts!.models.find((m) => m.model === model)!,
    attemptId: "a1",
    n: 1,
    signal,
    reportLoss: losing.reportLoss,
  } as unknown as Call;
  const judge = createEventGrammar();
  const events = of.seen ?? [];
  for await (const e of endpoint.run(wish(more), call, credential.fields)) {
    judge.event(e);
    events.push(e);
  }
  judge.end();
  return { events, answer: collectResponse(events), losses: losing.losses };
}
const caught = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error) => getFault(error) ?? expect.unreachable(String(error)),
  );
const bodies = (u: TestUpstream): Json[] =>
  u.requests.filter((r) => r.method === "POST").map((r) => r.json());

describe.concurrent("a job", () => {
  it("is submitted, polled, fetched, and billed by the service's price", async () => {
    const u = await service();
    const { answer, events } = await draw(u, { size: "1024x768", seed: 7, format: "png" });
    expect(events[0]).toEqual({ type: "start", id: "job-1" });
    expect(answer.blocks).toEqual([
      { type: "image", media: { bytes: PICTURE, mime: "image/png" } },
    ]);
    expect(events.find((e) => e.type === "usage")).toEqual({
      type: "usage",
      usage: { images: 1, megapixels: 0.001 },
      costNano: 40_000_000n,
    });
    expect(u.requests.map((r) => `${r.method} ${r.path}`)).toEqual([
      "POST /v1/flux-pro-1.1",
      "GET /poll",
      "GET /poll",
      "GET /sample.png",
    ]);
    expect(u.requests.every((r) => r.headers["x-key"] === "secret-key")).toBe(true);
    expect(bodies(u)).toEqual([
      { prompt: "A harbour", seed: 7, output_format: "png", width: 1024, height: 768 },
    ]);
  });

  it("becomes one job per image, in parallel", async () => {
    const jobs = () => u.requests.filter(({ method }) => method === "POST").length;
    const u: TestUpstream = await service((url) => ({
      // None of them is ready before all have arrived.
      "GET /poll": () =>
        jobs() < 3
          ? jsonResponse({ status: "Pending" })
          : jsonResponse({ status: "Ready", result: { sample: `${url()}/sample.png?sig=1` } }),
    }));
    const { answer, events } = await draw(u, { n: 3 });
    expect(answer.blocks).toHaveLength(3);
    expect(events.find((e) => e.type === "usage")).toMatchObject({
      usage: { images: 3 },
      costNano: 120_000_000n,
    });
  });

  it("is returned by URL to a client that requests a URL", async () => {
    const u = await service();
    const { answer } = await draw(u, { responseFormat: "url" });
    expect(answer.blocks).toEqual([{ type: "image", media: { url: `${u.url}/sample.png?sig=1` } }]);
    expect(u.requests.some((r) => r.path === "/sample.png")).toBe(false);
  });

  it("forwards the client's own fields, but no webhook URL", async () => {
    const u = await service();
    const { losses } = await draw(u, {
      responseFormat: "url",
      quality: "hd",
      user: "me",
      rest: { safety_tolerance: 2, webhook_url: "https://evil.test/", prompt_upsampling: true },
      ext: { images: { style: "vivid" } },
    });
    expect(bodies(u)).toEqual([
      { prompt: "A harbour", safety_tolerance: 2, prompt_upsampling: true },
    ]);
    expect(losses.map((l) => l.field).sort()).toEqual(["quality", "style", "user", "webhook_url"]);
  });

  it("has an aspect ratio in place of a size if the model needs one", async () => {
    const u = await service();
    const { losses } = await draw(
      u,
      { responseFormat: "url", size: "1920x1080" },
      { model: "flux-pro-1.1-ultra" },
    );
    expect(bodies(u)).toEqual([{ prompt: "A harbour", aspect_ratio: "16:9" }]);
    expect(losses).toMatchObject([{ field: "size", how: "approximated" }]);
  });

  it("survives temporary errors, because it is paid for", async () => {
    const u = await service((url) => ({
      "GET /poll": [
        { status: 503, body: "busy" },
        { truncation: { after: "nothing", how: "reset" } },
        jsonResponse({}, 429),
        () => jsonResponse({ state: "Ready", result: { sample: `${url()}/sample.png` } }),
      ],
    }));
    expect((await draw(u)).answer.blocks).toHaveLength(1);
  });
});

describe.concurrent("a job that fails", () => {
  const REFUSED: [status: number, body: Json, expected: object][] = [
    [401, { detail: "Not authenticated" }, { kind: "upstream_auth" }],
    [
      402,
      { detail: "Insufficient credits" },
      { kind: "upstream_quota", message: "Black Forest Labs: Insufficient credits" },
    ],
    [404, {}, { kind: "not_found" }],
    [
      422,
      { detail: [{ loc: ["body", "width"], msg: "too small", type: "x" }] },
      { kind: "invalid", message: "Black Forest Labs: body.width: too small" },
    ],
    [429, { detail: "24 active tasks" }, { kind: "rate_limited", retryAfterMs: 7_000 }],
    [500, "oops", { kind: "upstream" }],
    [503, {}, { kind: "overloaded" }],
  ];
  for (const [status, body, expected] of REFUSED)
    it(`refused with ${status}`, async () => {
      const u = await service({
        "POST *": {
          ...jsonResponse(body, status),
          headers: { "content-type": "application/json", "retry-after": "7" },
        },
      });
      const seen: ModelEvent[] = [];
      expect(await caught(draw(u, {}, { seen }))).toMatchObject(expected);
      // Nothing was accepted, so nothing is billed.
      expect(seen).toEqual([]);
    });

  const ENDED: [status: string, expected: object][] = [
    ["Request Moderated", { kind: "content_policy", code: "moderation_blocked" }],
    ["Content Moderated", { kind: "content_policy" }],
    ["Error", { kind: "upstream", code: "job_failed" }],
    ["Task not found", { kind: "upstream" }],
    ["Ready", { code: "no_image" }],
  ];
  for (const [status, expected] of ENDED)
    it(`ended with ${status}`, async () => {
      const u = await service({ "GET /poll": jsonResponse({ status, result: null }) });
      const seen: ModelEvent[] = [];
      expect(await caught(draw(u, {}, { seen }))).toMatchObject(expected);
      expect(seen).toEqual([{ type: "start", id: "job-1" }]);
    });

  // It moves the clock of this process.
  it("one of several stops the polling of the others", { concurrent: false }, async () => {
    const time = installTestClock();
    let asks = 0;
    const u = await service({
      "GET /poll": (asked: UpstreamRequest) => {
        asks++;
        return jsonResponse({ status: asked.query.get("id") === "job-2" ? "Failed" : "Pending" });
      },
    });
    expect(await caught(draw(u, { n: 3 }))).toMatchObject({ code: "job_failed" });
    const then = asks;
    for (let i = 0; i < 10; i++) {
      // Longer than the longest interval between two polls.
      time.skip(10_000);
      await turnEventLoop(500);
    }
    // Each of the two others may have sent a poll just before.
    expect(asks - then).toBeLessThanOrEqual(2);
  });

  it("has a deadline", async () => {
    const u = await service({ "GET /poll": jsonResponse({ status: "Pending" }) });
    expect(await caught(draw(u, {}, { timeout_s: 1 }))).toMatchObject({ kind: "timeout" });
  });

  it("is abandoned when the client disconnects, also during a poll", async () => {
    const u = await service({ "GET /poll": { delayMs: 60_000 } });
    const gone = new AbortController();
    const drawing = caught(draw(u, {}, { signal: gone.signal }));
    const poll = await u.waitForRequest(2);
    gone.abort();
    expect(await drawing).toMatchObject({ kind: "canceled" });
    await poll.whenDone;
    expect(poll.state).toBe("aborted");
    expect(u.requests).toHaveLength(2);
  });

  it("sends its key to no other host", async () => {
    const other = await service();
    const elsewhere = await service({
      "POST *": jsonResponse({ id: "j", polling_url: `${other.url}/poll` }),
    });
    expect(await caught(draw(elsewhere))).toMatchObject({ code: "bad_polling_url" });
    for (const url of ["https://bfl.ai.evil.test/", "http://api.bfl.ai/x", "nonsense"]) {
      const u = await service({ "POST *": jsonResponse({ id: "j", polling_url: url }) });
      expect(await caught(draw(u))).toMatchObject({ code: "bad_polling_url" });
    }
    // An image at another address is fetched without the key, through the egress guard, which
    // rejects it here.
    const moved = await service({
      "GET /poll": jsonResponse({ status: "Ready", result: { sample: `${other.url}/sample.png` } }),
    });
    await expect(draw(moved)).rejects.toThrow(/No response is configured/);
    expect(other.requests).toEqual([]);
  });

  it("rejects a result that is no image", async () => {
    const u = await service({ "GET /sample.png": { body: "<html>" } });
    expect(await caught(draw(u))).toMatchObject({ code: "no_image" });
    const gone = await service({ "GET /sample.png": { status: 403 } });
    expect(await caught(draw(gone))).toMatchObject({ code: "download_failed" });
    const silent = await service({ "POST *": jsonResponse({ id: "j" }) });
    expect(await caught(draw(silent))).toMatchObject({ code: "bad_answer" });
  });

  it("sends no option that the model does not support", async () => {
    const u = await service();
    expect(await caught(draw(u, { format: "webp" }))).toMatchObject({ param: "output_format" });
    expect(await caught(draw(u, { n: 5 }))).toMatchObject({ param: "n" });
    expect(await caught(draw(u, { inputImages: [{ base64: "" }] }))).toMatchObject({
      kind: "unsupported",
    });
    expect(u.requests).toEqual([]);
  });
});
