// Sent bodies are the analyzed ones: a reservation uses the body that upstream reads, and no field
// of another protocol is sent under a name that the target's codec knows.
import { describe, expect, it } from "vitest";
import * as fc from "fast-check";
import type { Price, Reserve } from "tollgate/plugin";
import { chats, LEAST, upstreams } from "../../protocols/generators/codecs.ts";
import { startBackend, startTestServices } from "../../kit/test-services.ts";
import { everyNth, trialCount } from "../../kit/law-effort.ts";

const price: Price = {
  lines: [
    { unit: "input", usd: "1", per: 1_000_000 },
    { unit: "output", usd: "10", per: 1_000_000 },
  ],
};
const BASES: { readonly [protocol: string]: object } = {
  "chat-completions": { messages: [{ role: "user", content: "Hi" }], max_tokens: 100 },
  messages: { messages: [{ role: "user", content: "Hi" }], max_tokens: 100 },
  responses: { input: "Hi", max_output_tokens: 100 },
  gemini: { ...LEAST["gemini"], generationConfig: { maxOutputTokens: 100 } },
};
const limit = { scope: "key", unit: "nano_usd", max: 10n ** 15n, per: "day" } as const;

async function left(
  from: string,
  into: string,
  more: object,
  prepare?: (out: { set(field: string, value: never): void }) => void,
) {
  await using up = await startBackend((_req, res) => {
    res.writeHead(400, { "content-type": "application/json" });
    res.end("{}");
  });
  await using s = await startTestServices({
    frontend: chats[from]!,
    providers: {
      p: {
        endpoints: [{ protocol: upstreams[into]!, base: up.base, auth: "none" }],
        facts: new Map([["m", { price, limits: { context: 10_000, output: 1_000 } }]]) as never,
      },
    },
    hooks: [
      { charge: () => ({ hold: "hard" as const, limits: [limit] }), ...(prepare && { prepare }) },
    ],
  });
  const answer = await s.ask({ model: "p/m", ...BASES[from], ...more });
  await answer.text();
  const reserved = s.journal.find((c) => c.do === "reserve") as Reserve | undefined;
  return {
    status: answer.status,
    warnings: answer.headers.get("x-tollgate-warnings") ?? "",
    body: up.asked[0] && (JSON.parse(up.asked[0].body) as Record<string, unknown>),
    take: reserved?.claims[0]!.take ?? 0n,
  };
}

describe("a field that the target's codec sets", () => {
  it.each([
    ["messages", "chat-completions", { n: 128 }],
    ["messages", "chat-completions", { best_of: 128 }],
    ["messages", "chat-completions", { num_return_sequences: 128 }],
    ["messages", "chat-completions", { reasoning_effort: "high" }],
    ["chat-completions", "messages", { speed: "fast" }],
    ["chat-completions", "gemini", { generation_config: { candidateCount: 8 } }],
    ["responses", "chat-completions", { n: 2, max_tokens: 100_000 }],
  ])("is not merged from %s into %s: %j", async (from, into, more) => {
    const { body } = await left(from, into, more);
    for (const field in more) expect(body).not.toHaveProperty(field);
  });

  it("also inside an object: fields that the codec does not know are kept", async () => {
    const config = { candidateCount: 8, mediaResolution: "MEDIA_RESOLUTION_LOW", topK: 3 };
    const { body } = await left("chat-completions", "gemini", { generationConfig: config });
    expect(body!["generationConfig"]).toEqual({
      maxOutputTokens: 100,
      mediaResolution: "MEDIA_RESOLUTION_LOW",
    });
  });

  it.each(Object.keys(chats).flatMap((from) => Object.keys(upstreams).map((into) => [from, into])))(
    "is not taken from the other protocol, whatever it is: from %s into %s",
    async (from, into) => {
      const client = upstreams[into]!.client!;
      const own = await left(from!, into!, {});
      const strange = ["n", "seed", "best_of", "speed", "thinking", "reasoning", "tool_choice"];
      for (const field of from === into ? [] : strange.filter((name) => client.knowsField!(name))) {
        const { body } = await left(from!, into!, { [field]: "?" });
        // A value that its own codec set is not the client's original.
        if (body && !(field in own.body!)) expect(body[field], field).not.toBe("?");
      }
    },
  );
});

/** Names with a meaning in JavaScript and none in an API. */
const ODD = ["__proto__", "constructor", "hasOwnProperty", "then", "catch", "toJSON", "valueOf"];
const VALUES = ["-1", "null", '"then"', '{"n":128}', "[[]]"];

it.each(Object.keys(chats).flatMap((from) => Object.keys(upstreams).map((into) => [from, into])))(
  "with an unusual name is like any other, from %s into %s",
  async (from, into) => {
    for (const [column, name] of ODD.entries())
      for (const value of everyNth(3, VALUES, column + Object.keys(chats).indexOf(from!))) {
        const { body } = await left(from!, into!, JSON.parse(`{"${name}":${value}}`));
        const said = `${name}: ${value}`;
        // One API rejects unknown names, so only its own clients may send them.
        if (into !== "gemini" || from === "gemini")
          expect(Object.hasOwn(body!, name), said).toBe(true);
        if (Object.hasOwn(body!, name)) expect(body![name], said).toEqual(JSON.parse(value));
      }
  },
);

describe("a reservation", () => {
  it("counts what a prepare hook added to the body", async () => {
    const plain = await left("chat-completions", "chat-completions", {});
    const more = await left("chat-completions", "chat-completions", {}, (out) =>
      out.set("n", 50 as never),
    );
    expect(more.body).toMatchObject({ n: 50 });
    expect(more.take).toBeGreaterThan(plain.take * 20n);
  });

  it.each(["best_of", "num_return_sequences", "n"])(
    "counts the choices that %s requests",
    async (field) => {
      const plain = await left("chat-completions", "chat-completions", {});
      const many = await left("chat-completions", "chat-completions", { [field]: 128 });
      expect(many.take).toBeGreaterThan(plain.take * 50n);
    },
  );

  it.each(["constructor", "toString", "__proto__", "hasOwnProperty", "hologram"])(
    "does not count a part of type %s as text",
    async (type) => {
      const url = "A".repeat(3_000);
      for (const from of Object.keys(chats)) {
        const part = JSON.parse(`{"type":"${type}","${type}":{"url":"${url}"}}`) as object;
        const said = [{ role: "user", content: [part] }];
        const contents = [{ role: "user", parts: [part] }];
        const { take } = await left(from, from, { messages: said, input: said, contents });
        expect(take, from).toBeGreaterThanOrEqual(10_000_000n);
      }
    },
  );

  it("has one token per byte in any script", async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: "grapheme", maxLength: 300 }), async (said) => {
        const { body, take } = await left("chat-completions", "messages", {
          messages: [{ role: "user", content: `x${said}` }],
        });
        const bytes = Buffer.byteLength(JSON.stringify(body));
        expect(take).toBeGreaterThanOrEqual(BigInt(Math.min(bytes, 10_000)) * 1_000n + 1_000_000n);
      }),
      { numRuns: trialCount(20) },
    );
  });

  it.each([1.5, "16", 1e300, -3, 0])("is valid for an unusual number of choices: %s", async (n) => {
    const { status } = await left("chat-completions", "chat-completions", { best_of: n });
    expect(status).toBeLessThan(500);
  });
});
