// Plans of lines: a provider runs them in a batch if any of its endpoints does.
import { expect, it } from "vitest";
import { defineFrontend, getFault, type JsonObject, type PlannedLine } from "tollgate/plugin";
import { digestKey, mintKey } from "../../../src/lib/api-key.ts";
import { startGateway } from "tollgate/testing";

/** A frontend that plans the line in its request, and returns the plan. */
const lab = defineFrontend({
  api: 1,
  name: "lab",
  summary: "Plans lines",
  setup: (_, ctx) => ({
    routes: [
      {
        method: "POST",
        path: "/lab/plans",
        body: "json",
        async handle(x, body) {
          const { path, ...request } = body as { path: string };
          const line = { path, body: Buffer.from(JSON.stringify(request)) };
          let planned: PlannedLine;
          try {
            planned = await ctx.jobLines!.planLine(line, { parentRequest: x, preferred: [] });
          } catch (error) {
            return { status: 200, body: { error: getFault(error)?.code ?? String(error) } };
          }
          const { protocol, mode } = planned.target;
          const target = { protocol, mode, path: planned.target.path };
          const sent = JSON.parse(planned.body) as JsonObject;
          return { status: 200, body: { target, sent, holdNano: String(planned.holdNano) } };
        },
      },
    ],
  }),
});

const CHAT = { protocol: "chat-completions", path: "/chat/completions" };
const LINES = {
  "/v1/chat/completions": { messages: [{ role: "user", content: "Hi" }] },
  "/v1/responses": { input: "Hi" },
  "/v1/messages": { max_tokens: 9, messages: [{ role: "user", content: "Hi" }] },
};

it.each([
  ["/v1/chat/completions", "groq/llama", { ...CHAT, mode: "passthrough" }],
  // The endpoint for responses runs no batches.
  ["/v1/responses", "groq/llama", { ...CHAT, mode: "translated" }],
  ["/v1/messages", "groq/llama", { ...CHAT, mode: "translated" }],
  [
    "/v1/responses",
    "openai/gpt",
    { protocol: "responses", path: "/responses", mode: "passthrough" },
  ],
  ["/v1/responses", "demo/demo", { error: "batches_not_supported" }],
] as const)("a line of %s for %s", async (path, model, expected) => {
  await using gateway = await startGateway({
    config: `frontends: [chat-completions, responses, messages, lab]
providers:
  groq: { use: groq, with: { api_key: k } }
  openai: { use: openai, with: { api_key: k } }
  demo: { use: demo }
store: memory`,
    plugins: { lab },
  });
  const response = await fetch(`${gateway.url}/lab/plans`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ path, model, ...LINES[path] }),
  });
  const planned = (await response.json()) as { readonly target?: object };
  expect(planned.target ?? planned).toEqual(expected);
});

/** Price of a token of output in a batch, in billionths of a US dollar. */
const NANO_PER_TOKEN = 10_000;

it("the output limit of a hard budget is in the line, and its reservation covers the limit", async () => {
  const { secret } = mintKey();
  await using gateway = await startGateway({
    config: `frontends: [responses, lab]
middleware:
  - use: auth
    with: { keys: [{ id: alice, digest: ${digestKey(secret)}, limits: [usd=100/day] }] }
  - { use: limits, with: { hold: hard } }
providers:
  openai:
    use: openai
    with: { api_key: "\${env:KEY:-k}" }
    models:
      gpt:
        price: { input: "2", output: "20", tiers: { batch: { input: "1", output: "10" } } }
        limits: { output: 4000 }
store: memory`,
    plugins: { lab },
  });
  const plan = async (more: object) => {
    const response = await fetch(`${gateway.url}/lab/plans`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${secret}` },
      body: JSON.stringify({ path: "/v1/responses", model: "openai/gpt", input: "Hi", ...more }),
    });
    return (await response.json()) as { readonly sent: JsonObject; readonly holdNano: string };
  };
  for (const asked of [undefined, 500, 900_000]) {
    const { sent, holdNano } = await plan({ max_output_tokens: asked });
    const cap = Number(sent["max_output_tokens"]);
    expect(cap).toBeGreaterThan(0);
    expect(cap).toBeLessThanOrEqual(asked ?? cap);
    expect(Number(holdNano)).toBeGreaterThanOrEqual(cap * NANO_PER_TOKEN);
  }
});
