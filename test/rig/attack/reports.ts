// Usage reports in the format of each protocol, with counts and tool runs without a price.
import type { JsonObject } from "tollgate/plugin";
import type { Order } from "./bills.ts";

export type Wire = "chat" | "messages" | "responses" | "gemini";

/**
 * A usage report with these counts, by the names of each protocol, and with optional extra fields.
 */
export function reported(
  wire: Wire,
  input: number,
  output: number,
  more: JsonObject = {},
): JsonObject {
  switch (wire) {
    case "chat":
      return {
        prompt_tokens: input,
        completion_tokens: output,
        total_tokens: input + output,
        ...more,
      };
    case "gemini":
      return {
        promptTokenCount: input,
        candidatesTokenCount: output,
        totalTokenCount: input + output,
        ...more,
      };
    default:
      return {
        input_tokens: input,
        output_tokens: output,
        ...(wire === "responses" && { total_tokens: input + output }),
        ...more,
      };
  }
}

/** Extra counts and tool runs, all without a price. */
export const EXTRAS: { readonly [wire in Wire]: readonly ((n: number) => Partial<Order>)[] } = {
  chat: [
    (n) => ({ usage: { num_search_queries: n } }),
    (n) => ({ usage: { server_tool_use: { web_search_requests: n } } }),
    (n) => ({
      usage: { server_side_tool_usage_details: { x_search_calls: n, code_interpreter_calls: n } },
    }),
    (n) => ({ more: { service_tier: ["flex", "scale", "priority", "warp", "__proto__"][n % 5]! } }),
  ],
  messages: [
    (n) => ({ usage: { server_tool_use: { web_search_requests: n, web_fetch_requests: n } } }),
    (n) => ({ usage: { cache_read_input_tokens: n, cache_creation_input_tokens: n } }),
    (n) => ({ usage: { service_tier: ["priority", "batch", "warp"][n % 3]! } }),
    (n) => ({
      tools: Array.from({ length: n }, (_, i) => ({
        type: "server_tool_use",
        id: `s${i}`,
        name: ["web_search", "code_execution", "telescope"][i % 3]!,
        input: {},
      })),
    }),
  ],
  responses: [
    (n) => ({
      tools: Array.from({ length: n }, () => ({ type: "web_search_call", status: "completed" })),
    }),
    (n) => ({
      tools: Array.from({ length: n }, (_, i) => ({
        type: "code_interpreter_call",
        status: "completed",
        container_id: `c${i}`,
      })),
    }),
    (n) => ({
      tools: Array.from({ length: n }, () => ({ type: "file_search_call", status: "completed" })),
    }),
    (n) => ({
      tools: Array.from({ length: n }, () => ({
        type: "image_generation_call",
        status: "completed",
        result: "iVBORw0KGgo=",
      })),
    }),
    (n) => ({ more: { tool_usage: { web_search: { num_requests: n } } } }),
    (n) => ({ more: { service_tier: ["flex", "scale", "priority", "warp"][n % 4]! } }),
  ],
  gemini: [
    (n) => ({
      more: {
        groundingMetadata: { webSearchQueries: Array.from({ length: n }, (_, i) => `q${i}`) },
      },
    }),
    () => ({ more: { groundingMetadata: { groundingChunks: [{ maps: { uri: "u" } }] } } }),
    (n) => ({ usage: { cachedContentTokenCount: n } }),
  ],
};
