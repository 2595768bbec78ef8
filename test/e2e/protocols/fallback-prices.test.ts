// One response, several models and prices: Anthropic's own fallback, as a ledger row.
import { afterAll, beforeAll, expect, it } from "vitest";
import type { LedgerEntry } from "tollgate/plugin";
import { jsonResponse, startUpstream, type TestUpstream } from "tollgate/testing";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";

let up: TestUpstream;
let at: InProcessGateway;
let second = "dear";
beforeAll(async () => {
  const counts = (input: number, output: number) => ({
    input_tokens: input,
    output_tokens: output,
  });
  up = await startUpstream({
    "POST /v1/messages": () =>
      jsonResponse({
        id: "msg_1",
        type: "message",
        role: "assistant",
        model: second,
        content: [{ type: "text", text: "Hello" }],
        stop_reason: "end_turn",
        stop_sequence: null,
        usage: {
          ...counts(1_003, 107),
          iterations: [
            { type: "message", model: "plain", ...counts(1_001, 11) },
            { type: "fallback_message", model: second, ...counts(1_003, 107) },
          ],
        },
      }),
    "GET /*": jsonResponse({ data: [] }),
  });
  at = await startInProcess({
    yaml: `
frontends: [messages]
middleware: [auth, limits, usage]
providers:
  up:
    use: anthropic-compatible
    with: { base_url: "${up.url}/v1", api_key: k }
    models:
      plain: { price: { input: 3, output: 15 } }
      dear: { price: { input: 5.001, output: 25.007 } }
`,
  });
});
afterAll(async () => {
  await at[Symbol.asyncDispose]();
  await up.close();
});

async function asked(): Promise<LedgerEntry> {
  const answer = await fetch(`${at.url}/v1/messages`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": at.key },
    body: JSON.stringify({
      model: "up/plain",
      max_tokens: 200,
      messages: [{ role: "user", content: "hi" }],
    }),
  });
  expect(answer.status).toBe(200);
  const { items } = (await at.ask("ledger.entries", { limit: 1_000 })) as unknown as {
    items: LedgerEntry[];
  };
  return items.findLast(({ kind }) => kind === "settle")!;
}

it("each part is billed at its own model's price, to the nano-dollar", async () => {
  const { state, costNano, parts } = await asked();
  const plain = 1_001 * 3_000 + 11 * 15_000;
  const dear = 1_003 * 5_001 + 107 * 25_007;
  expect([state, Number(costNano)]).toEqual(["exact", plain + dear]);
  expect(parts!.map(({ model, costNano }) => [model, Number(costNano)])).toEqual([
    ["plain", plain],
    ["dear", dear],
  ]);
  expect(new Set(parts!.map(({ price }) => price)).size).toBe(2);
  // Both prices are stored, so the row can be recomputed.
  expect(await at.ask("ledger.verify")).toMatchObject({ problems: [] });
});

it("a part without a price is reported, and estimated at the highest price of the others", async () => {
  second = "strange";
  const { state, costNano, parts } = await asked();
  expect([state, costNano]).toEqual(["estimated", "7782000"]);
  expect(parts!.map(({ model, price }) => [model, price === null])).toEqual([
    ["plain", false],
    ["strange", true],
  ]);
});
