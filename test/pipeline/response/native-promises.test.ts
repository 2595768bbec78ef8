// Native endpoints keep the guarantees of all others: a dropped field is in the warnings header, a
// strict request is rejected for it, and the client gets the provider's retry time.
import { defineProvider, fail, type Call, type ErrorKind, type ModelEvent } from "tollgate/plugin";
import { jsonResponse, startGateway, type ScriptedResponse } from "tollgate/testing";
import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { CLIENT_RETRIES } from "../../../src/model/client-retry.ts";
import { installTestClock } from "../../kit/clock.ts";
import { startBackend, startTestServices } from "../../kit/test-services.ts";
import { until } from "../../kit/wait.ts";
import { chats, LEAST } from "../../protocols/generators/codecs.ts";

/** Position in `run` at which a field is dropped. */
const PLACES = ["at first", "after the fetch", "after start", "after open"] as const;
type Place = (typeof PLACES)[number];

const native = (lost?: Place, kind?: ErrorKind) =>
  defineProvider({
    api: 1,
    name: "native",
    summary: "An endpoint that sends by itself",
    options: {
      type: "object",
      additionalProperties: false,
      properties: { base_url: { type: "string", "x-origin": true } },
    },
    setup: ({ base_url }) => ({
      endpoints: [
        {
          operation: "chat",
          base: base_url!,
          async *run(_request, call: Call): AsyncGenerator<ModelEvent> {
            const at = (place: Place) => {
              if (place === lost) call.reportLoss("top_p", "dropped");
            };
            at("at first");
            const { ok, status } = await call.fetch("say", { method: "POST", body: "{}" });
            if (!ok && kind) fail(kind, "The provider refused.");
            if (!ok) fail(status === 429 ? "rate_limited" : "upstream", "The provider refused.");
            at("after the fetch");
            yield { type: "start" };
            at("after start");
            yield { type: "open", index: 0, block: { type: "text" } };
            at("after open");
            yield { type: "delta", index: 0, text: "Hello" };
            yield { type: "close", index: 0 };
            yield { type: "usage", usage: { input: 1, output: 1 } };
            yield { type: "finish", reason: "stop" };
          },
        },
      ],
    }),
  });

const started = (lost?: Place, answer: ScriptedResponse = jsonResponse({}), kind?: ErrorKind) =>
  startGateway({
    plugins: { native: native(lost, kind) },
    upstream: { "POST /say": answer },
    config: {
      providers: { p: { use: "native", with: { base_url: "${env:UPSTREAM}" } } },
      retries: { per_target: 1, total: 1 },
    },
  });

describe.each(PLACES)("a field that is dropped %s", (lost) => {
  it.each([false, true])("is in the warnings, streamed: %s", async (stream) => {
    await using at = await started(lost);
    const { status, headers, text } = await at.ask("p/model", "Hi", { stream });
    expect([status, text, headers["x-tollgate-warnings"]]).toEqual([
      200,
      "Hello",
      "dropped;field=top_p",
    ]);
  });

  it.each([false, true])("is an error for a strict request, streamed: %s", async (stream) => {
    await using at = await started(lost);
    const strict = { "x-tollgate-strict": "true" };
    const { status, error } = await at.ask("p/model", "Hi", { stream, headers: strict });
    expect([status, error?.code]).toEqual([400, "lossy_translation"]);
    expect(at.upstream.requests).toHaveLength(lost === "at first" ? 0 : 1);
  });
});

describe("the provider's retry-after", () => {
  it.each([
    [429, { "retry-after": "7" }, "7"],
    [503, { "retry-after": "7" }, "7"],
    [429, { "retry-after-ms": "2500" }, "3"],
    [429, { "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "9s" }, "9"],
  ])("%i with %o reaches the client as %s", async (status, headers, seconds) => {
    await using at = await started(undefined, { ...jsonResponse({}, status), headers });
    const got = await at.ask("p/model", "Hi");
    expect([got.status, got.headers["retry-after"]]).toEqual([status === 429 ? 429 : 502, seconds]);
  });
});

describe("a failure of each kind, after a response with retry-after", () => {
  it.each(Object.entries(CLIENT_RETRIES))("%s: the client may retry: %s", async (kind, retries) => {
    const answer = { ...jsonResponse({}, 503), headers: { "retry-after": "7" } };
    await using at = await started(undefined, answer, kind as ErrorKind);
    const { headers } = await at.ask("p/model", "Hi");
    const may = retries !== "no";
    expect([headers["retry-after"], headers["x-should-retry"]]).toEqual([
      may ? "7" : undefined,
      String(may),
    ]);
  });
});

it("a field that is dropped after the headers were sent is an error of the call", async () => {
  const time = installTestClock();
  const waiting: ServerResponse[] = [];
  await using up = await startBackend((req, res) => {
    if (req.url!.endsWith("/say")) return void res.end("{}");
    res.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
    waiting.push(res);
  });
  const { endpoints } = await native("after start").setup(
    { base_url: up.base },
    undefined as never,
  );
  const auth = "none" as const;
  await using s = await startTestServices({
    frontend: chats["messages"]!,
    models: { both: ["silent/m", "native/m"] },
    providers: {
      silent: { endpoints: [{ protocol: chats["messages"]!, base: up.base, auth }] },
      native: { endpoints: endpoints.map((one) => ({ ...one, auth })) as never },
    },
  });
  const asked = s.ask({ ...LEAST["messages"], model: "both", stream: true });
  await until(() => waiting.length === 1);
  time.skip(11_000);
  const got = await asked;
  expect([got.status, got.headers.get("x-tollgate-warnings")]).toEqual([200, null]);
  waiting[0]!.destroy();
  const text = await got.text();
  expect(text).toContain("event: error");
  expect(text).not.toContain("Hello");
});

it("headers that are sent before the provider's have the warnings of the call", async () => {
  const time = installTestClock();
  const waiting: ServerResponse[] = [];
  await using up = await startBackend((_req, res) => void waiting.push(res));
  const auth = "none" as const;
  await using s = await startTestServices({
    frontend: chats["messages"]!,
    providers: { p: { endpoints: [{ protocol: chats["responses"]!, base: up.base, auth }] } },
  });
  const stop = { stop_sequences: ["END"] };
  const asked = s.ask({ ...LEAST["messages"], ...stop, model: "p/m", stream: true });
  await until(() => waiting.length === 1);
  time.skip(11_000);
  const { headers } = await asked;
  expect(headers.get("x-tollgate-warnings")).toBe("emulated;field=stop_sequences");
  expect(headers.get("service-zdr-policy")).toContain("retention=");
  expect(headers.get("x-tollgate-generation")).toBe("1");
});
