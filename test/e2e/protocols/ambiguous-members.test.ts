// Fields inside messages, items, and tools have one interpretation too: no spelling hides stored
// state of other keys, hosted tools, or stream settings. The client's own data (schemas, arguments)
// is unrestricted.
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

const user = (...content: object[]) => [{ role: "user", content }];

/** Bodies by their content, and the key in each that is written in other ways. */
const HELD: {
  readonly [spoken in ScriptProtocol]: readonly (readonly [key: string, body: object])[];
} = {
  "chat-completions": [
    ["role", { messages: [{ role: "user", content: "Hi" }] }],
    ["content", { messages: [{ role: "user", content: "Hi" }] }],
    ["type", { messages: user({ type: "text", text: "Hi" }) }],
    ["file", { messages: user({ type: "file", file: { file_id: "file_1" } }) }],
    ["file_id", { messages: user({ type: "file", file: { file_id: "file_1" } }) }],
    ["audio", { messages: [{ role: "assistant", audio: { id: "audio_1" } }, ...user()] }],
    ["id", { messages: [{ role: "assistant", audio: { id: "audio_1" } }, ...user()] }],
    ["url", { messages: user({ type: "image_url", image_url: { url: "https://e/a.png" } }) }],
    ["type", { tools: [{ type: "function", function: { name: "f" } }] }],
    ["name", { tools: [{ type: "function", function: { name: "f" } }] }],
    ["include_usage", { stream: true, stream_options: { include_usage: false } }],
    ["type", { thinking: { type: "disabled" } }],
    ["type", { response_format: { type: "json_object" } }],
  ],
  messages: [
    ["role", { messages: [{ role: "user", content: "Hi" }] }],
    ["type", { messages: user({ type: "text", text: "Hi" }) }],
    [
      "source",
      { messages: user({ type: "image", source: { type: "url", url: "https://e/a.png" } }) },
    ],
    ["file_id", { messages: user({ type: "document", source: { type: "file", file_id: "f1" } }) }],
    ["file_id", { messages: user({ type: "container_upload", file_id: "f1" }) }],
    ["signature", { messages: user({ type: "thinking", thinking: "x", signature: "s" }) }],
    ["type", { tools: [{ type: "web_search_20250305", name: "web_search" }] }],
    ["type", { thinking: { type: "disabled" } }],
    ["id", { container: { id: "container_1" } }],
    ["thread", { thread: { id: "thread_1" } }],
    ["container", { container: "container_1" }],
    ["mcp_servers", { mcp_servers: [] }],
    ["service_tier", { service_tier: "auto" }],
    ["ttl", { cache_control: { type: "ephemeral", ttl: "1h" } }],
  ],
  responses: [
    ["role", { input: [{ role: "user", content: "Hi" }] }],
    ["type", { input: user({ type: "input_text", text: "Hi" }) }],
    ["file_id", { input: user({ type: "input_file", file_id: "file_1" }) }],
    ["id", { input: [{ type: "item_reference", id: "msg_1" }] }],
    ["encrypted_content", { input: [{ type: "reasoning", summary: [], encrypted_content: "e" }] }],
    ["vector_store_ids", { tools: [{ type: "file_search", vector_store_ids: ["vs_1"] }] }],
    ["container", { tools: [{ type: "code_interpreter", container: "cntr_1" }] }],
    ["type", { tools: [{ type: "web_search" }] }],
    ["effort", { reasoning: { effort: "low" } }],
    ["format", { text: { format: { type: "text" } } }],
    ["previous_response_id", { previous_response_id: "resp_1" }],
    ["conversation", { conversation: "conv_1" }],
    ["comparison_response_id", { prompt_cache_options: { comparison_response_id: "resp_1" } }],
  ],
};

const LEAST: { readonly [spoken in ScriptProtocol]: object } = {
  "chat-completions": { messages: [{ role: "user", content: "Hi" }] },
  messages: { max_tokens: 100, messages: [{ role: "user", content: "Hi" }] },
  responses: { input: "Hi" },
};

const VARIANTS: Readonly<Record<string, (key: string) => string | undefined>> = {
  "in capitals": (key) => key.toUpperCase(),
  "with one capital": (key) => key[0]!.toUpperCase() + key.slice(1),
  "with a long s": (key) => (key.includes("s") ? key.replace("s", "\u017f") : undefined),
  "with an escaped long s": (key) => (key.includes("s") ? key.replace("s", "\\u017f") : undefined),
  "with a Kelvin sign": (key) => (key.includes("k") ? key.replace("k", "\u212a") : undefined),
  "behind an escape": (key) =>
    `\\u00${key.charCodeAt(0).toString(16).padStart(2, "0")}${key.slice(1)}`,
};

async function send(spoken: ScriptProtocol, body: string) {
  at.up.reset();
  const response = await fetch(at.gateway.url + PATHS[spoken], {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(spoken === "messages"
        ? { "x-api-key": at.gateway.key }
        : { authorization: `Bearer ${at.gateway.key}` }),
    },
    body,
  });
  return { status: response.status, text: await response.text() };
}

describe.each(SPOKEN)("%s", (spoken) => {
  describe.each(SPOKEN)("to %s", (upstream) => {
    const written = (body: object) =>
      JSON.stringify({ model: modelOn(upstream), ...LEAST[spoken], ...body });

    it.each(HELD[spoken])("%s in %j", async (key, held) => {
      const good = written(held);
      const place = `"${key}":`;
      const from = good.lastIndexOf(place);
      for (const [name, variant] of Object.entries(VARIANTS)) {
        const other = variant(key);
        if (other === undefined) continue;
        const after = good.slice(from + place.length);
        // In its place, and next to it.
        for (const bad of [
          `${good.slice(0, from)}"${other}":${after}`,
          `${good.slice(0, from)}"${other}":null,${place}${after}`,
        ]) {
          const { status, text } = await send(spoken, bad);
          expect([name, status], `${bad}\n${text}`).toEqual([name, 400]);
          expect(at.asked()).toEqual([]);
        }
      }
      const twice = `${good.slice(0, from)}${place}null,${good.slice(from)}`;
      expect((await send(spoken, twice)).text).toContain("occurs twice");
    });

    it("a field of the client's own data is not restricted", async () => {
      const schema = {
        type: "object",
        properties: { Type: { type: "string" }, FILE_ID: {}, "a<b": {} },
      };
      const args = { Type: "x", File_ID: "y", Role: { Name: 1 } };
      const bodies: { readonly [spoken in ScriptProtocol]: object } = {
        "chat-completions": {
          tools: [{ type: "function", function: { name: "f", parameters: schema } }],
          metadata: { Type: "x" },
        },
        messages: {
          tools: [{ name: "f", input_schema: schema }],
          messages: [
            { role: "user", content: "Hi" },
            { role: "assistant", content: [{ type: "tool_use", id: "c", name: "f", input: args }] },
            { role: "user", content: [{ type: "tool_result", tool_use_id: "c", content: "x" }] },
          ],
        },
        responses: {
          tools: [{ type: "function", name: "f", parameters: schema, strict: false }],
          metadata: { Type: "x" },
        },
      };
      const text = written({ ...bodies[spoken], Brand_New: { Type: "x" } });
      for (const one of [text, text.replaceAll("<", "\\u003c")]) {
        const { status, text: said } = await send(spoken, one);
        expect(status, said).toBe(200);
        expect(String(at.asked()[0]!.body)).toContain("FILE_ID");
      }
    });
  });
});
