// Plans of lines: a provider runs them in a batch if any of its endpoints does.
import { expect, it } from "vitest";
import { defineFrontend, getFault, type PlannedLine } from "tollgate/plugin";
import { startGateway } from "tollgate/testing";

/** A frontend that plans the line in its request, and returns the protocol and path of the target. */
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
          return { status: 200, body: { protocol, mode, path: planned.target.path } };
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
  expect(await response.json()).toEqual(expected);
});
