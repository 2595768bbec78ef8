// A budget requires a price for each part of a bill: a request for an unpriced part is rejected by
// name. Without a budget, that part is billed as an estimate.
import { expect, it } from "vitest";
import type { Price, PriceLine, Protocol, Settle, Unit } from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { messages } from "tollgate/protocols/messages";
import { responses } from "tollgate/protocols/responses";
import { FREE } from "../../../src/money/price.ts";
import { startBackend, startTestServices } from "../../kit/test-services.ts";

const limit = { scope: "key", unit: "nano_usd", max: 10n ** 15n, per: "total" } as const;
const plain: Price = {
  lines: [
    { unit: "input", usd: "3", per: 1_000_000 },
    { unit: "output", usd: "15", per: 1_000_000 },
  ],
};
const withUnit = (unit: Unit): Price => {
  const line: PriceLine = { unit, usd: "0.01", per: 1 };
  return { ...plain, lines: [...plain.lines, line] };
};

const answers: { readonly [id: string]: object } = {
  "chat-completions": {
    id: "c",
    object: "chat.completion",
    created: 1,
    model: "m",
    choices: [{ index: 0, message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }],
    usage: { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 },
  },
  messages: {
    id: "m",
    type: "message",
    role: "assistant",
    model: "m",
    content: [{ type: "text", text: "Hi" }],
    stop_reason: "end_turn",
    usage: { input_tokens: 5, output_tokens: 7 },
  },
  responses: {
    id: "r",
    object: "response",
    status: "completed",
    model: "m",
    output: [
      { type: "message", role: "assistant", content: [{ type: "output_text", text: "Hi" }] },
    ],
    usage: { input_tokens: 5, output_tokens: 7, total_tokens: 12 },
  },
};

const user = [{ role: "user", content: "Hi" }];
const bodies: { readonly [id: string]: object } = {
  "chat-completions": { messages: user },
  messages: { messages: user, max_tokens: 64 },
  responses: { input: "Hi", store: false },
};

async function ask(
  protocol: Protocol,
  of: { fields: object; price: Price; hold?: "hard" | "expected" | "soft"; answer?: object },
) {
  await using up = await startBackend((_req, res) => {
    res.writeHead(200, { "content-type": "application/json" });
    res.end(JSON.stringify({ ...answers[protocol.id], ...of.answer }));
  });
  await using s = await startTestServices({
    frontend: protocol,
    providers: {
      p: {
        endpoints: [{ protocol, base: up.base, auth: "none" }],
        facts: new Map([
          ["m", { price: of.price, limits: { context: 1_000_000, output: 64_000 } }],
        ]) as never,
      },
    },
    ...(of.hold && { hooks: [{ charge: () => ({ hold: of.hold!, limits: [limit] }) }] }),
  });
  const res = await s.ask({ ...bodies[protocol.id], ...of.fields, model: "p/m" });
  const text = await res.text();
  return {
    status: res.status,
    text,
    sent: up.asked.length,
    settle: s.journal.find((c) => c.do === "settle") as Settle | undefined,
  };
}

const CHAT = chatCompletions() as Protocol;
const MESSAGES = messages() as Protocol;
const RESPONSES = responses() as Protocol;

/** Protocol, request, the tool's name in the rejection, and its unit. */
const TOOLS: readonly (readonly [Protocol, object, string, Unit])[] = [
  [CHAT, { web_search_options: {} }, "web_search", "searches"],
  [CHAT, { plugins: [{ id: "web" }] }, "web_search", "searches"],
  [CHAT, { plugins: [{ id: "telescope" }] }, "plugin_telescope", "tool_runs"],
  [CHAT, { tools: [{ type: "browser_search" }] }, "browser_search", "searches"],
  [CHAT, { tools: [{ type: "code_interpreter" }] }, "code_interpreter", "code_sessions"],
  [
    MESSAGES,
    { tools: [{ type: "web_search_20250305", name: "web_search" }] },
    "web_search",
    "searches",
  ],
  [
    MESSAGES,
    { tools: [{ type: "web_fetch_20250910", name: "web_fetch" }] },
    "web_fetch",
    "fetches",
  ],
  [
    MESSAGES,
    { tools: [{ type: "code_execution_20250825", name: "code_execution" }] },
    "code_execution",
    "code_sessions",
  ],
  [RESPONSES, { tools: [{ type: "web_search" }] }, "web_search", "searches"],
  [
    RESPONSES,
    { tools: [{ type: "web_search_preview_2025_03_11" }] },
    "web_search_preview",
    "searches",
  ],
  [RESPONSES, { tools: [{ type: "file_search" }] }, "file_search", "file_searches"],
  [
    RESPONSES,
    { tools: [{ type: "code_interpreter", container: { type: "auto" } }] },
    "code_interpreter",
    "code_sessions",
  ],
  [RESPONSES, { tools: [{ type: "image_generation" }] }, "image_generation", "images"],
  [RESPONSES, { tools: [{ type: "telescope" }] }, "telescope", "tool_runs"],
];

it.each(TOOLS.map((row) => [row[0].id, row[2], ...row] as const))(
  "%s, %s: rejected by name under a budget if there is no price",
  async (_id, _tool, protocol, fields, tool, unit) => {
    for (const hold of ["hard", "expected", "soft"] as const) {
      const refused = await ask(protocol, { fields, price: plain, hold });
      expect(refused).toMatchObject({ sent: 0, settle: undefined });
      expect([402, 429]).toContain(refused.status);
      expect(refused.text).toContain(`the tool ${tool} (${unit})`);
      expect(refused.text).toContain("has a budget");
      expect((await ask(protocol, { fields, price: withUnit(unit), hold })).status).toBe(200);
      expect((await ask(protocol, { fields, price: FREE, hold })).status).toBe(200);
    }
    // Without a budget it is answered. Uncounted runs are an estimate.
    const { status, settle } = await ask(protocol, { fields, price: plain });
    expect(status).toBe(200);
    const counted = protocol.client!.countedToolUnits?.includes(unit);
    expect(settle).toMatchObject({ state: counted ? "exact" : "estimated" });
    expect(settle!.costNano! > 120_000n).toBe(!counted);
  },
);

it("tools that are billed by their tokens are allowed under a budget", async () => {
  const fields = {
    tools: [
      { type: "mcp", server_label: "a", server_url: "https://a.test" },
      { type: "tool_search" },
    ],
  };
  expect((await ask(RESPONSES, { fields, price: plain, hold: "hard" })).status).toBe(200);
});

it("a service tier without a price is rejected by name under a budget, and billed as an estimate without one", async () => {
  for (const tier of ["flex", "scale", "priority", "warp", "constructor"]) {
    const fields = { service_tier: tier };
    const refused = await ask(CHAT, { fields, price: plain, hold: "expected" });
    expect(refused).toMatchObject({ status: 429, sent: 0 });
    expect(refused.text).toContain(`service tier \\"${tier}\\"`);
    // A compatible provider echoes the request.
    const { settle } = await ask(CHAT, { fields, price: plain, answer: { service_tier: tier } });
    expect(settle).toMatchObject({ state: "estimated", costNano: 120_000n });
  }
});

it("counts above the model's input or output limit are an estimate", async () => {
  const usage = (prompt: number, completion: number) => ({
    usage: {
      prompt_tokens: prompt,
      completion_tokens: completion,
      total_tokens: prompt + completion,
    },
  });
  const fields = { max_tokens: 100 };
  const state = async (prompt: number, completion: number) =>
    (await ask(CHAT, { fields, price: plain, answer: usage(prompt, completion) })).settle!.state;
  expect(await state(1_000_000, 100)).toBe("exact");
  expect(await state(1_000_001, 100)).toBe("estimated");
  expect(await state(10, 101)).toBe("estimated");
});
