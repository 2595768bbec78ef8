// Content of one provider account: encrypted reasoning that another account cannot read is omitted
// and reported once, and a stored object is requested from its account only.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { responses } from "tollgate/protocols/responses";
import { jsonResponse, say, startUpstream } from "tollgate/testing";
import { startTestServices } from "../../kit/test-services.ts";

const credential = (name: string) => ({
  name,
  fields: { api_key: name },
  weight: 1,
  models: undefined,
  zdr: undefined,
});
const reasoning = (by: string) => ({
  type: "reasoning",
  id: "rs_1",
  summary: [],
  encrypted_content: `of ${by}`,
});
const refusal = {
  error: {
    message: "It could not be verified.",
    type: "invalid_request_error",
    code: "invalid_encrypted_content",
  },
};

async function accounts(of: { down?: string; stubborn?: true; state?: "relay"; target?: number }) {
  const up = await startUpstream({
    "POST *": (asked) => {
      const key = String(asked.headers["authorization"]).replace("Bearer ", "");
      if (key === of.down)
        return jsonResponse({ error: { message: "Down.", type: "server_error" } }, 503);
      if (of.stubborn) return jsonResponse(refusal, 400);
      const input = asked.json()["input"] as { encrypted_content?: string }[];
      const foreign =
        Array.isArray(input) &&
        input.some(({ encrypted_content: of }) => of !== undefined && of !== `of ${key}`);
      return foreign ? jsonResponse(refusal, 400) : say("Hello").toResponse(asked);
    },
  });
  const s = await startTestServices({
    frontend: responses(),
    providers: {
      p: {
        endpoints: [
          {
            protocol: responses(),
            base: `${up.url}/v1`,
            auth: { header: "authorization", prefix: "Bearer ", field: "api_key" as never },
          },
        ],
        credentials: [credential("a"), credential("b")],
        ...(of.state && { stateMode: of.state }),
      } as never,
    },
    models: { any: ["p/m"] },
    attempts: { perTarget: of.target ?? 2, total: 4 },
  });
  return {
    ask: async (input: unknown, stream = false, headers = {}) => {
      const before = up.requests.length;
      const res = await s.ask({ model: "any", input, stream }, { headers });
      const text = await res.text();
      const asked = up.requests.slice(before);
      return { status: res.status, text, warnings: res.headers.get("x-tollgate-warnings"), asked };
    },
    async [Symbol.asyncDispose]() {
      await s[Symbol.asyncDispose]();
      await up[Symbol.asyncDispose]();
    },
  };
}

const turn = (by: string) => [
  { role: "user", content: "Hi" },
  reasoning(by),
  {
    type: "message",
    id: "msg_1",
    role: "assistant",
    content: [{ type: "output_text", text: "x" }],
  },
  { role: "user", content: "And?" },
];

describe("a stored object", () => {
  const file = [{ role: "user", content: [{ type: "input_file", file_id: "file_1" }] }];
  const keys = (asked: readonly { headers: { authorization?: string | undefined } }[]) =>
    new Set(asked.map(({ headers }) => headers.authorization));

  it("is requested from its own account only, also if that fails", async () => {
    await using well = await accounts({ state: "relay" });
    for (let i = 0; i < 8; i++) {
      const { status, asked } = await well.ask(file);
      expect([status, keys(asked)]).toEqual([200, new Set(["Bearer a"])]);
    }
    await using down = await accounts({ state: "relay", down: "a" });
    const { status, asked } = await down.ask(file);
    expect([status, keys(asked)]).toEqual([503, new Set(["Bearer a"])]);
    // Of the others, the healthy one is called.
    expect((await down.ask("Hi")).status).toBe(200);
  });
});

describe("encrypted reasoning", () => {
  it("of another account is omitted and reported; of its own account it is sent", async () => {
    await using of = await accounts({ down: "a" });
    await fc.assert(
      fc.asyncProperty(fc.boolean(), fc.constantFrom("a", "b"), async (stream, by) => {
        const { status, text, warnings, asked } = await of.ask(turn(by), stream);
        expect([status, text.includes("Hello")]).toEqual([200, true]);
        expect(warnings?.includes("account_bound") ?? false).toBe(by === "a");
        const last = asked.at(-1)!.json()["input"] as { type?: string; id?: string }[];
        expect(last.some(({ type }) => type === "reasoning")).toBe(by === "b");
        if (by === "a") expect(last.some(({ id }) => id !== undefined)).toBe(false);
      }),
      { numRuns: 8 },
    );
  });

  it("is omitted at most once, and not if the target allows one attempt or nothing may be lost", async () => {
    await using once = await accounts({ down: "a", target: 1 });
    expect((await once.ask(turn("a"))).status).toBe(400);
    await using stubborn = await accounts({ stubborn: true, target: 4 });
    expect((await stubborn.ask(turn("a"))).asked).toHaveLength(2);
    // Then it is the account that created it, or none.
    await using strict = await accounts({ down: "a" });
    await using compacted = await accounts({ down: "a" });
    const all = [...turn("a"), { type: "compaction", id: "c", encrypted_content: "of a" }];
    for (const { status, asked } of [
      await strict.ask(turn("a"), false, { "x-tollgate-strict": "true" }),
      await compacted.ask(all),
    ]) {
      expect(status).toBe(503);
      for (const one of asked)
        expect(JSON.stringify(one.json()["input"])).toContain("encrypted_content");
    }
  });
});
