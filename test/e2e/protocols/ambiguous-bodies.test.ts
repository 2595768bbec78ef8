// A body has one interpretation. A key that is duplicated, escaped, or differs in case could be
// read differently here and upstream: it is rejected, or not sent.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ScriptProtocol } from "tollgate/testing";
import {
  startGatewayWithUpstream,
  modelOn,
  SPOKEN,
  type GatewayWithUpstream,
} from "../sdk/gateway-with-upstream.ts";

let at: GatewayWithUpstream;
beforeAll(async () => {
  at = await startGatewayWithUpstream();
});
afterAll(() => at[Symbol.asyncDispose]());

const PATHS: { readonly [spoken in ScriptProtocol]: string } = {
  "chat-completions": "/v1/chat/completions",
  messages: "/v1/messages",
  responses: "/v1/responses",
};
const USER = [{ role: "user", content: "Hi" }];
/** A valid body with every field that the gateway uses, as JSON texts by field. */
const BODIES: { readonly [spoken in ScriptProtocol]: { readonly [field: string]: unknown } } = {
  "chat-completions": {
    model: modelOn("chat-completions"),
    messages: USER,
    stream: false,
    max_tokens: 100,
    n: 1,
    stop: ["END"],
    tools: [{ type: "function", function: { name: "f", parameters: { type: "object" } } }],
    tool_choice: "auto",
    response_format: { type: "text" },
    reasoning_effort: "low",
    store: false,
    metadata: { a: "b" },
    user: "u",
    service_tier: "auto",
  },
  messages: {
    model: modelOn("messages"),
    messages: USER,
    stream: false,
    max_tokens: 2000,
    system: "Be kind.",
    tools: [{ name: "f", input_schema: { type: "object" } }],
    tool_choice: { type: "auto" },
    thinking: { type: "disabled" },
    stop_sequences: ["END"],
    metadata: { user_id: "u" },
  },
  responses: {
    model: modelOn("responses"),
    input: "Hi",
    stream: false,
    max_output_tokens: 100,
    instructions: "Be kind.",
    tools: [{ type: "function", name: "f", parameters: { type: "object" }, strict: false }],
    tool_choice: "auto",
    store: false,
    include: ["reasoning.encrypted_content"],
    text: { format: { type: "text" } },
    reasoning: { effort: "low" },
    metadata: { a: "b" },
    service_tier: "auto",
  },
};

/** Different values, so that a parser of the second one behaves differently. */
const OTHER: { readonly [field: string]: unknown } = {
  model: modelOn("messages", "other"),
  stream: true,
  store: true,
  messages: [{ role: "user", content: "Something else" }],
  input: "Something else",
  max_tokens: 1,
  max_output_tokens: 16,
  n: 7,
};

const escaped = (key: string) =>
  `\\u${key.charCodeAt(0).toString(16).padStart(4, "0")}${key.slice(1)}`;
const VARIANTS: Readonly<Record<string, (key: string) => string>> = {
  "stands twice": (key) => key,
  "hides a letter": escaped,
  "hides all its letters": (key) => [...key].map(escaped).join(""),
  "in capitals": (key) => key.toUpperCase(),
  "with one capital": (key) => key[0]!.toUpperCase() + key.slice(1),
  "with a Kelvin sign or a long s": (key) => key.replace("k", "\u212a").replace("s", "\u017f"),
};

/** The body as text, with an additional member before or after the valid one. */
function text(
  body: { readonly [field: string]: unknown },
  key: string,
  value: unknown,
  first: boolean,
): string {
  const good = Object.entries(body).map(
    ([name, one]) => `${JSON.stringify(name)}:${JSON.stringify(one)}`,
  );
  const extra = `"${key}":${JSON.stringify(value)}`;
  return `{${(first ? [extra, ...good] : [...good, extra]).join(",")}}`;
}

const send = (spoken: ScriptProtocol, body: string) =>
  fetch(at.gateway.url + PATHS[spoken], {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(spoken === "messages"
        ? { "x-api-key": at.gateway.key, "anthropic-version": "2023-06-01" }
        : { authorization: `Bearer ${at.gateway.key}` }),
    },
    body,
  });

/**
 * Every top-level key as some parser might read it: unescaped, or folded like Go does (a Kelvin
 * sign is a k, a long s an s).
 */
function keysOf(body: string): string[] {
  const keys: string[] = [];
  let depth = 0;
  for (const [token] of body.matchAll(/"(?:[^"\\]|\\.)*"\s*:?|[[\]{}]/g)) {
    if (token === "{" || token === "[") depth++;
    else if (token === "}" || token === "]") depth--;
    else if (depth === 1 && token.endsWith(":"))
      keys.push((JSON.parse(token.slice(0, -1).trim()) as string).normalize("NFKC").toLowerCase());
  }
  return keys;
}

describe.each(SPOKEN)("%s", (spoken) => {
  const body = BODIES[spoken];
  it("accepts the valid body", async () => {
    const response = await send(spoken, JSON.stringify(body));
    expect([response.status, await response.text()]).toEqual([200, expect.anything()]);
  });

  describe.each(Object.keys(body))("%s", (field) => {
    const variants = Object.entries(VARIANTS).filter(
      ([name, variant]) => variant(field) !== field || name === "stands twice",
    );
    it.each(variants)("%s", async (_name, variant) => {
      const key = variant(field);
      for (const first of [true, false]) {
        at.up.reset();
        const response = await send(spoken, text(body, key, OTHER[field] ?? body[field], first));
        const said = await response.text();
        if (response.status === 400) {
          expect(at.asked(), "refused before anything leaves").toEqual([]);
          expect(JSON.parse(said)).toHaveProperty("error");
          continue;
        }
        expect(response.status, said).toBe(200);
        for (const asked of at.asked()) {
          const keys = keysOf(String(asked.body));
          expect(
            keys.filter((one) => one === field),
            `${key} beside ${field}`,
          ).toHaveLength(keys.includes(field) ? 1 : 0);
        }
      }
    });
  });

  it("rejects duplicates at deeper levels, where tools and messages are read", async () => {
    const deep = JSON.stringify(body).replace('"role":"user"', '"role":"user","role":"system"');
    if (deep === JSON.stringify(body)) return;
    expect((await send(spoken, deep)).status).toBe(400);
  });

  it("rejects bodies that are not JSON, not UTF-8, or nested too deeply", async () => {
    const good = JSON.stringify(body);
    for (const bad of [
      good.slice(0, -1),
      `${good}x`,
      `[${good}]`,
      good.replace("Hi", "\ud800"),
      good.replace('"Hi"', `${'{"a":'.repeat(70)}1${"}".repeat(70)}`),
    ]) {
      const { status } = await send(spoken, bad);
      if (bad.includes("\ud800")) continue;
      expect(status, bad.slice(0, 60)).toBe(400);
    }
    const bytes = Buffer.from(good.replace("Hi", "H\u00ff"), "latin1");
    const response = await fetch(at.gateway.url + PATHS[spoken], {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "x-api-key": at.gateway.key,
        ...(spoken !== "messages" && { authorization: `Bearer ${at.gateway.key}` }),
      },
      body: bytes,
    });
    expect(response.status).toBe(400);
  });
});
