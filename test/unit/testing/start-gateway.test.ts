// A gateway in a test: what a client requests, what the upstream receives, and what the ledger
// records.
import { describe, expect, it } from "vitest";
import { defineMiddleware, defineObserver, fail } from "tollgate/plugin";
import { errorResponse, hookChecks, say, scriptedModel, startGateway } from "tollgate/testing";

const PROVIDER = {
  up: { use: "openai-compatible", with: { base_url: "${env:UPSTREAM}/v1" } },
};

describe("a gateway in a test", () => {
  it("responds, streaming and non-streaming, and returns its ledger", async () => {
    await using at = await startGateway({ config: { providers: PROVIDER } });
    for (const stream of [false, true])
      expect(await at.ask("up/model", "Hi", { stream })).toMatchObject({
        status: 200,
        text: "Hello",
      });
    expect(at.calls).toEqual([
      expect.objectContaining({ provider: "up", model: "model", outcome: "ok", state: "unpriced" }),
      expect.objectContaining({ usage: expect.objectContaining({ input: 10 }) }),
    ]);
    expect(at.upstream.requests.filter(({ method }) => method === "POST")).toHaveLength(2);
  });

  it("accepts YAML as text, and reports its errors", async () => {
    await using at = await startGateway({ config: "providers:\n  demo: { use: demo }" });
    expect((await at.ask("demo/echo", "Hi there")).text).toBe("Hi there");
    await expect(
      startGateway({ config: { providers: { x: { use: "nothing" } } } }),
    ).rejects.toThrow(/providers\.x/);
  });

  it("returns an upstream's rejection as the client receives it", async () => {
    await using at = await startGateway({
      config: { providers: PROVIDER },
      upstream: { "*": errorResponse(401, "No such key.") },
    });
    const { status, error, text } = await at.ask("up/model", "Hi");
    expect([status, error?.code, text]).toEqual([502, "upstream_auth", ""]);
  });

  it("runs a plugin's command", async () => {
    let seen = 0;
    const counter = defineObserver({
      api: 1,
      name: "counter",
      summary: "Counts",
      sends: "nowhere",
      setup: () => ({
        onRequests: (batch) => void (seen += batch.length),
        commands: { seen: { summary: "How many", run: async () => seen } },
      }),
    });
    await using at = await startGateway({
      plugins: { counter },
      config: { observers: ["counter"], providers: { demo: { use: "demo" } } },
    });
    expect(await at.runCommand("observers.counter", "seen")).toBe(0);
  });
});

/**
 * Replaces a name in requests and restores it in responses. `split`: it forgets that a word may
 * arrive in two pieces.
 */
const masker = (split: boolean) =>
  defineMiddleware({
    api: 1,
    name: "masker",
    summary: "Hides Ann",
    sends: "nowhere",
    setup: () => ({
      rewrite(request) {
        if (request.operation !== "chat") return request;
        const hidden = (text: string) => text.replaceAll("Ann", "[A]");
        const turns = request.turns.map((turn) => ({
          ...turn,
          blocks: turn.blocks.map((b) => (b.type === "text" ? { ...b, text: hidden(b.text) } : b)),
        }));
        return { ...request, turns };
      },
      event(_call, next) {
        let held = "";
        return (event) => {
          if (event.type === "delta") {
            const text = (split ? "" : held) + event.text;
            const whole = text.replaceAll("secret", "******");
            // Text that may be the beginning of the word is held back until that is clear.
            const keep = split ? 0 : tail(whole);
            held = whole.slice(whole.length - keep);
            if (whole.length > keep) next({ ...event, text: whole.slice(0, whole.length - keep) });
            return;
          }
          if (event.type === "close" && held !== "")
            next({ type: "delta", index: event.index, text: held });
          if (event.type === "close") held = "";
          next(event);
        };
      },
    }),
  });

const tail = (text: string): number => {
  for (let n = Math.min(5, text.length); n > 0; n--)
    if ("secret".startsWith(text.slice(-n))) return n;
  return 0;
};

describe("the case table", () => {
  const cases = {
    allowed: ["Hello"],
    rewritten: [{ request: "I am Ann.", becomes: "I am [A].", hides: "Ann" }],
    streams: [
      {
        modelOutput: "It is a secret, you see.",
        clientOutput: "It is a ******, you see.",
        mustNotContain: "secret",
      },
    ],
  };
  const failed = async (split: boolean, more: object = {}) => {
    const wrong: string[] = [];
    for (const { name, run } of hookChecks(masker(split), { ...cases, ...more }))
      await run().catch((error: Error) => wrong.push(`${name} | ${error.message}`));
    return wrong;
  };

  it("passes for a correct plugin", async () => expect(await failed(false)).toEqual([]));

  it("finds a stage that lets a masked word through across two deltas, in both modes", async () => {
    const wrong = await failed(true);
    expect(wrong).toHaveLength(2);
    for (const one of wrong) expect(one).toMatch(/"secret" reached the client, streamed/);
  });

  it("finds a duplicate case, a missing refusal, and a wrong upstream request", async () => {
    const wrong = await failed(false, {
      allowed: ["Hello", "Hello"],
      rejected: [{ request: "Hello", code: "no" }],
      rewritten: [{ request: "I am Ann.", hidden: "I am" }],
    });
    expect(wrong.join("\n")).toMatch(/duplicate cases/);
    expect(wrong.join("\n")).toMatch(/was accepted with status 200/);
    expect(wrong.join("\n")).toMatch(/the provider received I am/);
  });

  it("finds a failure that is reported as a refusal", async () => {
    const broken = defineMiddleware({
      api: 1,
      name: "broken",
      summary: "Throws",
      sends: "nowhere",
      setup: () => ({
        inspect: (request) =>
          request.operation === "chat" ? Promise.reject(new Error("x")) : fail("invalid", "No."),
      }),
    });
    const wrong: string[] = [];
    for (const { run } of hookChecks(broken, { rejected: [{ request: "Hello" }] }))
      await run().catch((error: Error) => wrong.push(error.message));
    expect(
      wrong.filter((one) => one.includes("the hook failed instead of rejecting")),
    ).toHaveLength(6);
  });

  it("uses the configured protocol", async () => {
    await using at = await startGateway({
      config: { providers: PROVIDER },
      upstream: scriptedModel(say("One").say(" two"), ["model"]),
    });
    expect((await at.ask("up/model", "Hi", { stream: true })).text).toBe("One two");
  });
});
