// Endpoints of lines: a line is planned for the first endpoint that runs batches and supports it. A line
// that would lose a field at another endpoint is sent by the gateway, if it may be.
import { afterAll, beforeAll, expect, it } from "vitest";
import { defineFrontend, getFault, type BatchTarget } from "tollgate/plugin";
import { startGateway, type StartedGateway } from "tollgate/testing";

interface Plan {
  readonly model: string;
  readonly tools?: readonly object[];
  readonly allowsDirect?: boolean;
  readonly preferred?: readonly BatchTarget[];
}

/** A frontend that plans the line in its request, and returns the target. */
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
          const { model, tools = [], allowsDirect, preferred = [] } = body as unknown as Plan;
          const request = { model, input: "Hi", ...(tools.length > 0 && { tools }) };
          const line = { path: "/v1/responses", body: Buffer.from(JSON.stringify(request)) };
          try {
            const of = { parentRequest: x, preferred, allowsDirect };
            const { target } = await ctx.jobLines!.planLine(line, of);
            return { status: 200, body: target as never };
          } catch (error) {
            return { status: 200, body: { error: getFault(error)?.code ?? String(error) } };
          }
        },
      },
    ],
  }),
});

let gateway: StartedGateway;
beforeAll(async () => {
  gateway = await startGateway({
    config: `frontends: [responses, lab]
providers:
  groq: { use: groq, with: { api_key: k } }
  openai: { use: openai, with: { api_key: k } }
models: { fast: [groq/llama, openai/gpt] }
store: memory`,
    plugins: { lab },
  });
});
afterAll(() => gateway?.[Symbol.asyncDispose]());

async function plan(of: Plan): Promise<BatchTarget> {
  const response = await fetch(`${gateway.url}/lab/plans`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(of),
  });
  return (await response.json()) as BatchTarget;
}

const NONE = [] as const;
/** A tool that Chat Completions of this provider loses. */
const SEARCH = [{ type: "web_search" }];
/** A tool that Chat Completions cannot express. */
const CODE = [{ type: "code_interpreter", container: { type: "auto" } }];

// The endpoint of groq for responses runs no batches.
const CHAT = { provider: "groq", protocol: "chat-completions", mode: "translated" };
const DIRECT = { provider: "groq", protocol: "responses", mode: "passthrough", isDirect: true };
const FALLBACK = { provider: "openai", protocol: "responses", mode: "passthrough" };

it.each([
  ["groq/llama", NONE, false, CHAT],
  ["groq/llama", NONE, true, CHAT],
  ["groq/llama", SEARCH, false, CHAT],
  ["groq/llama", SEARCH, true, DIRECT],
  ["groq/llama", CODE, false, { error: "unsupported_tool" }],
  ["groq/llama", CODE, true, DIRECT],
  ["fast", NONE, false, CHAT],
  ["fast", SEARCH, true, FALLBACK],
  ["fast", CODE, false, FALLBACK],
  ["fast", CODE, true, FALLBACK],
] as const)("a line for %s with %j, sent by the gateway if needed: %s", async (...of) => {
  const [model, tools, allowsDirect, expected] = of;
  expect(await plan({ model, tools, allowsDirect })).toMatchObject(expected);
});

it("a target of other lines is preferred, if it supports the line", async () => {
  const groq = await plan({ model: "groq/llama" });
  const openai = await plan({ model: "openai/gpt" });
  expect(await plan({ model: "fast", preferred: [openai] })).toMatchObject(FALLBACK);
  expect(await plan({ model: "fast", preferred: [openai, groq] })).toMatchObject(CHAT);
  expect(await plan({ model: "fast", preferred: [groq], tools: CODE })).toMatchObject(FALLBACK);
});
