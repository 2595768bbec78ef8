// Fields of one protocol reach its own upstream unchanged. For another protocol, the client gets a
// warning, or an error in strict mode.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  startGatewayWithUpstream,
  modelOn,
  type GatewayWithUpstream,
} from "../sdk/gateway-with-upstream.ts";

let at: GatewayWithUpstream;
beforeAll(async () => {
  at = await startGatewayWithUpstream();
});
afterAll(() => at[Symbol.asyncDispose]());

const user = (more: object) => [{ role: "user", content: "Hi", ...more }];
const CASES = {
  messages: {
    path: "/v1/messages",
    body: {
      max_tokens: 50,
      messages: user({ brand_new: 1 }),
      cache_control: { type: "ephemeral" },
      tools: [
        {
          name: "f",
          input_schema: { type: "object" },
          input_examples: [{}],
          defer_loading: true,
          allowed_callers: ["code_execution_20250825"],
          eager_input_streaming: true,
        },
      ],
    },
    named: [
      "messages[0].brand_new",
      "cache_control",
      "tools.input_examples",
      "tools.defer_loading",
      "tools.allowed_callers",
      "tools.eager_input_streaming",
    ],
  },
  "chat-completions": {
    path: "/v1/chat/completions",
    body: {
      messages: [{ role: "user", brand_new: 1, content: [{ type: "text", text: "Hi", newer: 1 }] }],
      tools: [{ type: "function", function: { name: "f", parameters: {}, newest: 1 } }],
    },
    named: ["messages[0].brand_new", "messages[0].content[0].newer", "tools[0].function.newest"],
  },
  responses: {
    path: "/v1/responses",
    body: {
      input: [
        { role: "user", brand_new: 1, content: [{ type: "input_text", text: "Hi", newer: 1 }] },
      ],
      tools: [{ type: "function", name: "f", parameters: {}, newest: 1 }],
    },
    named: ["input[0].brand_new", "input[0].content[0].newer", "tools[0].newest"],
  },
} as const;
type Spoken = keyof typeof CASES;

async function ask(client: Spoken, up: Spoken, headers: Record<string, string> = {}) {
  at.up.reset();
  const { path, body } = CASES[client];
  const answer = await fetch(`${at.gateway.url}${path}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(client === "messages"
        ? { "x-api-key": at.gateway.key }
        : { authorization: `Bearer ${at.gateway.key}` }),
      ...headers,
    },
    body: JSON.stringify({ model: modelOn(up), ...body }),
  });
  await answer.text();
  const [asked] = at.asked();
  return {
    status: answer.status,
    warnings: answer.headers.get("x-tollgate-warnings"),
    sent: asked && JSON.parse(String(asked.body)),
  };
}

const all = Object.keys(CASES) as Spoken[];

describe.each(all)("unknown fields of a client of %s", (client) => {
  it("are forwarded if the protocol is the same", async () => {
    const { status, warnings, sent } = await ask(client, client);
    expect([status, warnings]).toEqual([200, null]);
    expect(sent).toMatchObject(CASES[client].body);
  });

  it.each(all.filter((up) => up !== client))("for %s are each reported", async (up) => {
    const { status, warnings, sent } = await ask(client, up);
    expect(status).toBe(200);
    for (const name of CASES[client].named) {
      expect(warnings).toContain(name);
      expect(JSON.stringify(sent)).not.toContain(name.split(/[.\]]/).at(-1));
    }
  });

  it.each(all.filter((up) => up !== client))("for %s are rejected in strict mode", async (up) => {
    const { status, sent } = await ask(client, up, { "x-tollgate-strict": "true" });
    expect([status, sent]).toEqual([400, undefined]);
  });
});
