// The settings and the telemetry of signed-in clients: checksums as Claude Code computes them,
// conditional requests, located errors, and bounds.
import fc from "fast-check";
import { expect, it } from "vitest";
import { createTestContext, fakes } from "tollgate/testing";
import {
  checksumOf,
  ManagedSettings,
  parseSettings,
} from "../../../plugins/frontends/claude-gateway/managed-settings.ts";
import { TelemetryRelay } from "../../../plugins/frontends/claude-gateway/telemetry-relay.ts";
import { trialCount } from "../../kit/law-effort.ts";

const load = (
  files: Readonly<Record<string, string>>,
  entries: readonly { account?: string; file: string }[],
  env?: Record<string, string>,
) => ManagedSettings.load(entries, { readFile: async (path) => Buffer.from(files[path]!) }, env);
const client = (account: string | undefined, headers = {}) =>
  fakes.exchange({ identity: { id: "key", account }, headers });

it("an account gets its own settings, and others the default; clients with the checksum get a 304", async () => {
  const settings = await load({ a: '{"model":"x"}', b: "{}" }, [
    { account: "research", file: "a" },
    { file: "b" },
  ]);
  const { status, body, headers } = settings.serve(client("research")) as any;
  expect(status).toBe(200);
  expect(body.settings).toEqual({ model: "x" });
  expect(headers.etag).toBe(`"${body.checksum}"`);
  expect((settings.serve(client("acme")) as any).body.settings).toEqual({});
  for (const tag of [headers.etag, `W/${headers.etag}`, `"other", ${headers.etag}`, "*"])
    expect(settings.serve(client("research", { "if-none-match": tag }))).toEqual({
      status: 304,
      headers: { etag: headers.etag, "cache-control": "private, no-cache" },
    });
  expect(settings.serve(client("acme", { "if-none-match": headers.etag })).status).toBe(200);
});

it("an account without settings gets a 404, which is not an empty policy", async () => {
  const settings = await load({ a: "{}" }, [{ account: "research", file: "a" }]);
  expect(() => settings.serve(client("acme"))).toThrow("no managed settings");
  expect(settings.serve(client("research")).status).toBe(200);
});

it("changed files apply after a refresh; an invalid one is logged once, and changes nothing", async () => {
  const files = { a: '{"model":"x"}' };
  const read = { readFile: async (path: string) => Buffer.from(files[path as "a"]) };
  const settings = await ManagedSettings.load([{ file: "a" }], read, undefined);
  const { ctx, logs } = createTestContext();
  const served = () => (settings.serve(client("x")) as any).body;
  const before = served();
  files.a = "{";
  await settings.refresh(ctx.log);
  await settings.refresh(ctx.log);
  expect(logs).toMatchObject([{ message: "managed settings not refreshed" }]);
  expect(served()).toEqual(before);
  files.a = '{"model":"y"}';
  await settings.refresh(ctx.log);
  expect(served()).toMatchObject({ settings: { model: "y" } });
  expect(served().checksum).not.toBe(before.checksum);
});

it("telemetry adds variables that a file can replace", async () => {
  const relay = new TelemetryRelay(createTestContext().ctx, {
    url: "http://collector",
    signals: ["metrics"],
  });
  const env = relay.env("https://gateway.example.com")!;
  expect(env).toEqual({
    CLAUDE_CODE_ENABLE_TELEMETRY: "1",
    OTEL_METRICS_EXPORTER: "otlp",
    OTEL_LOGS_EXPORTER: "none",
    OTEL_TRACES_EXPORTER: "none",
    OTEL_EXPORTER_OTLP_ENDPOINT: "https://gateway.example.com",
    OTEL_EXPORTER_OTLP_PROTOCOL: "http/protobuf",
  });
  const file = '{"env":{"OTEL_METRICS_EXPORTER":"none","MINE":"1"}}';
  const settings = await load({ a: file }, [{ account: "x", file: "a" }], env);
  expect((settings.serve(client("x")) as any).body.settings.env).toEqual({
    ...env,
    OTEL_METRICS_EXPORTER: "none",
    MINE: "1",
  });
  expect((settings.serve(client("other")) as any).body.settings).toEqual({ env });
});

it("law: the checksum depends on the content, not on the order of the members", async () => {
  await fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (settings) => {
      const reversed = Object.fromEntries(Object.entries(settings).toReversed());
      expect(checksumOf(reversed as never)).toBe(checksumOf(settings as never));
      expect(checksumOf({ ...settings, "own member": 1 } as never)).not.toBe(
        checksumOf(settings as never),
      );
    }),
    { numRuns: trialCount(100) },
  );
  // A text as Claude Code 2.1.332 hashes it.
  expect(checksumOf({ b: [{ d: 1, c: "x" }], a: {} })).toBe(
    "sha256:" +
      Buffer.from(
        await crypto.subtle.digest("SHA-256", Buffer.from('{"a":{},"b":[{"c":"x","d":1}]}')),
      ).toString("hex"),
  );
});

it("an invalid file is reported with its line and column", () => {
  expect(() => parseSettings('{\n  "a": 1,\n}', "s.json")).toThrow("s.json:3:1: the file is not");
  expect(() => parseSettings('{\n  "a": ', "s.json")).toThrow(/^s\.json:2:\d+: the file is not/);
  expect(() => parseSettings("[]", "s.json")).toThrow("s.json:1:1: the settings must be a JSON");
  expect(() => parseSettings('{\n "env": {"A": 1}}', "s.json")).toThrow(
    "s.json:2:2: env must be an object of texts",
  );
});

it("telemetry is forwarded without the client's credential, and a client never waits for it", async () => {
  const sent: { url: string; init: any }[] = [];
  let fails = false;
  const { ctx, logs } = createTestContext({
    fetch: async (url, init) => {
      sent.push({ url: String(url), init });
      if (fails) throw new Error("The collector is down.");
      return new Response("{}");
    },
  });
  const relay = new TelemetryRelay(ctx, {
    url: "http://collector/otlp/",
    headers: { "x-key": "k" },
    signals: ["metrics", "logs"],
  });
  const x = fakes.exchange({
    headers: { "content-type": "application/json", "content-encoding": "gzip" },
  });
  const body = Buffer.from("bytes");
  expect(relay.accept("metrics", x, body)).toEqual({ status: 200, body: {} });
  expect(relay.accept("traces", x, body).status).toBe(200);
  expect(sent).toHaveLength(1);
  expect(sent[0]!.url).toBe("http://collector/otlp/v1/metrics");
  expect(sent[0]!.init.body).toBe(body);
  expect(sent[0]!.init.headers).toEqual({
    "content-type": "application/json",
    "content-encoding": "gzip",
    "x-key": "k",
  });
  fails = true;
  for (let i = 0; i < 3; i++) expect(relay.accept("logs", x, body).status).toBe(200);
  await new Promise((resolve) => setImmediate(resolve));
  expect(logs).toHaveLength(1);
  expect(relay.accept("logs", x, Buffer.alloc(4 * 1024 * 1024 + 1)).status).toBe(413);
});

it("exports beyond the bounds are dropped", () => {
  let open = 0;
  const { ctx, logs } = createTestContext({
    fetch: () => {
      open++;
      return new Promise(() => {});
    },
  });
  const relay = new TelemetryRelay(ctx, { url: "http://collector", signals: ["logs"] });
  const x = fakes.exchange({ headers: { "content-type": "application/x-protobuf" } });
  for (let i = 0; i < 20; i++)
    expect(relay.accept("logs", x, Buffer.alloc(4 * 1024 * 1024)).status).toBe(200);
  expect(open).toBe(8);
  expect(logs).toMatchObject([{ message: "telemetry dropped" }]);
});
