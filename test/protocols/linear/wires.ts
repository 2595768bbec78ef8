// Each protocol's form of common content: turns, parts, calls, results, tools.
import type { Json, JsonObject } from "tollgate/plugin";

export interface Wire {
  text(said: string, role?: string): JsonObject;
  image(url: string): JsonObject;
  says(role: "user" | "assistant" | "system", parts: readonly Json[]): Json[];
  calls(all: readonly { id: string; name: string; args: string }[]): Json[];
  results(all: readonly { id: string; parts: readonly Json[] }[]): Json[];
  tool(name: string, schema: JsonObject): JsonObject;
  /** The whole body. */
  body(turns: readonly Json[], more?: JsonObject): JsonObject;
}

const chat: Wire = {
  text: (text) => ({ type: "text", text }),
  image: (url) => ({ type: "image_url", image_url: { url } }),
  says: (role, content) => [{ role, content }],
  calls: (all) => [
    {
      role: "assistant",
      content: null,
      tool_calls: all.map(({ id, name, args }) => ({
        id,
        type: "function",
        function: { name, arguments: args },
      })),
    },
  ],
  results: (all) =>
    all.map(({ id, parts }) => ({ role: "tool", tool_call_id: id, content: parts })),
  tool: (name, parameters) => ({ type: "function", function: { name, parameters } }),
  body: (messages, more) => ({ model: "m", messages, ...more }),
};

const messages: Wire = {
  text: (text) => ({ type: "text", text }),
  image: (url) => ({ type: "image", source: { type: "url", url } }),
  says: (role, content) => [{ role, content }],
  calls: (all) => [
    {
      role: "assistant",
      content: all.map(({ id, name, args }) => ({
        type: "tool_use",
        id,
        name,
        input: args.length < 1000 ? JSON.parse(args) : { a: args },
      })),
    },
  ],
  results: (all) => [
    {
      role: "user",
      content: all.map(({ id, parts }) => ({
        type: "tool_result",
        tool_use_id: id,
        content: parts,
      })),
    },
  ],
  tool: (name, input_schema) => ({ name, input_schema }),
  body: (turns, more) => ({ model: "m", max_tokens: 100, messages: turns, ...more }),
};

const responses: Wire = {
  text: (text, role) => ({ type: role === "assistant" ? "output_text" : "input_text", text }),
  image: (image_url) => ({ type: "input_image", image_url }),
  says: (role, content) => [{ type: "message", role, content }],
  calls: (all) =>
    all.map(({ id, name, args }) => ({
      type: "function_call",
      call_id: id,
      name,
      arguments: args,
    })),
  results: (all) =>
    all.map(({ id, parts }) => ({ type: "function_call_output", call_id: id, output: parts })),
  tool: (name, parameters) => ({ type: "function", name, parameters }),
  body: (input, more) => ({ model: "m", input, ...more }),
};

const inline = (url: string): JsonObject => {
  const [, mimeType, data] = /^data:([^;]+);base64,(.*)$/.exec(url) ?? [];
  return data === undefined
    ? { fileData: { mimeType: "image/png", fileUri: url } }
    : { inlineData: { mimeType, data } };
};

const gemini: Wire = {
  text: (text) => ({ text }),
  image: inline,
  says: (role, parts) => [{ role: role === "assistant" ? "model" : "user", parts }],
  calls: (all) => [
    {
      role: "model",
      parts: all.map(({ id, name, args }) => ({
        functionCall: { id, name, args: args.length < 1000 ? JSON.parse(args) : { a: args } },
      })),
    },
  ],
  results: (all) => [
    {
      role: "user",
      // Half of the clients send no ID.
      parts: all.map(({ id, parts }, i) => ({
        functionResponse: {
          ...(i % 2 && { id }),
          name: `f${i % 7}`,
          response: { output: "ok" },
          parts: parts.filter((part) => !(part as JsonObject)["text"]),
        },
      })),
    },
  ],
  tool: (name, parameters) => ({ functionDeclarations: [{ name, parameters }] }),
  body: (contents, more) => ({ model: "m", contents, ...more }),
};

export const wires: { readonly [protocol: string]: Wire } = {
  "chat-completions": chat,
  messages,
  responses,
  gemini,
};
