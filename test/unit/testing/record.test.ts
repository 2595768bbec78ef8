// Recording covers each endpoint, streamed and whole, with every secret masked; and the live laws,
// within their spending cap.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import {
  conformanceChecks,
  jsonResponse,
  liveChecks,
  recordProvider,
  say,
  scriptedModel,
  startUpstream,
  writeRecordings,
} from "tollgate/testing";
import { defineProvider } from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { messages } from "tollgate/protocols/messages";
import acme from "../../../examples/acme.ts";
import native from "../../../templates/provider-native/src/index.ts";

const KEY = 'canary-"7f3a"-record';

afterEach(() => vi.unstubAllEnvs());

const folder = () => {
  const path = mkdtempSync(join(tmpdir(), "tollgate-record-"));
  onTestFinished(() => rmSync(path, { recursive: true }));
  return path;
};

describe("a recording", () => {
  it("is made for each type of request, and follows the rules", async () => {
    await using up = await startUpstream(scriptedModel(say("Hello, wörld"), ["model"]));
    const given = { with: { base_url: `${up.url}/v1` }, credential: { api_key: KEY } };
    const made = await recordProvider(acme, { ...given, model: "model", prompt: "Hi" });
    expect(made.map(({ name, status }) => [name, status])).toEqual([
      ["chat-completions/hello-streamed", 200],
      ["chat-completions/hello-whole", 200],
    ]);
    expect(up.requests[0]!.headers.authorization).toBe(`Bearer ${KEY}`);
    const place = folder();
    expect(writeRecordings(made, place)).toHaveLength(2);
    const recordings = join(place, "chat-completions");
    for (const { name, run } of conformanceChecks(acme, { ...given, recordings }))
      if (name.includes("its decoders")) await run();
  });

  it("contains no secret, in any place and any encoding, and no account header", async () => {
    const clothes = [KEY, JSON.stringify(KEY).slice(1, -1), Buffer.from(KEY).toString("base64")];
    await using up = await startUpstream({
      "*": {
        ...jsonResponse({ choices: [], said: clothes, also: encodeURIComponent(KEY) }),
        headers: {
          "content-type": "application/json",
          "set-cookie": "account=ann",
          "x-organization": "ann's",
          "x-ratelimit-remaining": KEY.replaceAll('"', ""),
        },
      },
    });
    const made = await recordProvider(acme, {
      with: { base_url: `${up.url}/v1` },
      credential: { api_key: KEY },
      model: "model",
    });
    const place = folder();
    writeRecordings(made, place);
    const files = readdirSync(place, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name), "utf8"));
    expect(files).toHaveLength(4);
    for (const text of files) {
      for (const one of [...clothes, encodeURIComponent(KEY)]) expect(text).not.toContain(one);
      expect(text).not.toMatch(/ann|cookie|organization/);
    }
    expect(files.join()).toContain("*".repeat(KEY.length));
  });

  it("of a native endpoint is its upstream's response", async () => {
    await using up = await startUpstream({
      "POST /v1/say": {
        headers: { "content-type": "application/x-ndjson" },
        body: ['{"say":"Hi"}\n', '{"end":"stop","read":1,"written":1}\n'],
      },
    });
    const [one] = await recordProvider(native, {
      with: { base_url: `${up.url}/v1` },
      credential: { api_key: KEY },
      model: "model",
    });
    expect(one).toMatchObject({ name: "native/hello", status: 200 });
    expect(`${one!.body}`).toContain('"end":"stop"');
  });
});

describe("a live check", () => {
  const asked = (up: { url: string }, more: object = {}) =>
    liveChecks(acme, {
      with: { base_url: `${up.url}/v1` },
      credential: { api_key: KEY },
      model: "model",
      price: { input: 3, output: 15 },
      ...more,
    });

  it("runs only if requested", async () => {
    vi.stubEnv("TOLLGATE_LIVE", "");
    expect(asked({ url: "http://127.0.0.1:9" })).toEqual([]);
  });

  it("sends requests, and applies the rules to the responses", async () => {
    vi.stubEnv("TOLLGATE_LIVE", "1");
    await using up = await startUpstream(scriptedModel(say("Hello"), ["model"]));
    for (const { run } of asked(up)) await run();
    expect(up.requests.filter(({ method }) => method === "POST")).toHaveLength(2);
  });

  it("calls endpoints with the model, and skips others", async () => {
    vi.stubEnv("TOLLGATE_LIVE", "1");
    await using up = await startUpstream(scriptedModel(say("Hello"), ["model"]));
    const two = defineProvider({
      api: 1,
      name: "two",
      summary: "Two protocols",
      setup: () => {
        const own = { base: `${up.url}/v1`, auth: "none" as const };
        return {
          endpoints: [
            { ...own, protocol: chatCompletions() },
            { ...own, protocol: messages(), servesModel: () => false },
          ],
        };
      },
    });
    const price = { input: 3, output: 15 };
    for (const { run } of liveChecks(two, { model: "model", price })) await run();
    expect(up.requests).toHaveLength(2);
  });

  it("sends nothing that could cost more than the cap", async () => {
    vi.stubEnv("TOLLGATE_LIVE", "1");
    await using up = await startUpstream(scriptedModel(say("Hello"), ["model"]));
    const [check] = asked(up, { price: { input: 300, output: 15_000 } });
    await expect(check!.run()).rejects.toThrow(/could cost 2\.04\d\d USD, but capUsd is 0\.05/);
    expect(up.requests).toEqual([]);
  });

  it("reports a refusal as a refusal", async () => {
    vi.stubEnv("TOLLGATE_LIVE", "1");
    await using up = await startUpstream({ "*": jsonResponse({ error: { message: "No." } }, 401) });
    await expect(asked(up)[0]!.run()).rejects.toThrow(/returned status 401/);
  });
});
