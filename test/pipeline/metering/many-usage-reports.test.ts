// An upstream that reports its usage in too many parts, or with names and IDs of any length: the
// row stays small, and usage is billed, as an estimate if necessary.
import { describe, expect, it } from "vitest";
import type { Price, Reserve, Settle } from "tollgate/plugin";
import { chats, LEAST } from "../../protocols/generators/codecs.ts";
import { HOSTILE } from "../../rig/attack/upstream.ts";
import { startBackend, startTestServices } from "../../kit/test-services.ts";

const price: Price = {
  lines: [
    { unit: "input", usd: "1", per: 1_000_000 },
    { unit: "output", usd: "10", per: 1_000_000 },
  ],
};
const facts = { price, limits: { context: 10_000, output: 1_000 } };
const usage = { prompt_tokens: 1, completion_tokens: 1 };
const event = (more: object) =>
  `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [], ...more })}\n\n`;
const END =
  event({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }) +
  event({ usage }) +
  "data: [DONE]\n\n";
const SAID = event({ choices: [{ index: 0, delta: { content: "Hello" } }] });

const SAYS: { readonly [name: string]: (res: never) => void } = {
  "100,000 models": HOSTILE["many-reports"] as never,
  "an id of 3 MB": ((res: any) =>
    res
      .writeHead(200, { "content-type": "text/event-stream" })
      .end(event({ id: "i".repeat(3e6), choices: [] }) + SAID + END)) as never,
  "a model of 900 KB": ((res: any) =>
    res
      .writeHead(200, { "content-type": "text/event-stream" })
      .end(SAID + event({ model: "m".repeat(9e5), usage }) + END)) as never,
};

describe.each(Object.keys(SAYS))("an upstream that reports %s", (what) => {
  it.each(
    Object.keys(chats).flatMap((from) => [true, false].map((stream) => [from, stream] as const)),
  )("to a client of %s, streamed: %s, is billed in a small row", async (from, stream) => {
    await using up = await startBackend((_req, res) => SAYS[what]!(res as never));
    await using s = await startTestServices({
      frontend: chats[from]!,
      providers: {
        p: {
          endpoints: [
            {
              protocol: chats["chat-completions"]!,
              base: up.base,
              auth: "none",
              streaming: "always",
            },
          ],
          facts: new Map([["m", facts]]) as never,
        },
      },
    });
    // A failed stream may be truncated.
    await (await s.ask({ model: "p/m", stream, ...LEAST[from] })).text().catch(() => "");
    const reserve = s.journal.find((c) => c.do === "reserve") as Reserve;
    const settles = s.journal.filter((c) => c.do === "settle") as Settle[];
    expect(settles).toHaveLength(1);
    const [settle] = settles;
    const row = JSON.stringify(settle, (_, v: unknown) => (typeof v === "bigint" ? `${v}` : v));
    expect(row.length).toBeLessThan(32_000);
    expect(settle!.costNano, settle!.state).toBeGreaterThan(0n);
    expect(settle!.costNano).toBeLessThanOrEqual(reserve.holdNano!);
    expect(settle!.state).toBe(what === "100,000 models" ? "estimated" : settle!.state);
  });
});
