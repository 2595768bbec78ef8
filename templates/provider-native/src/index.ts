// Acme has its own API: POST /say accepts a prompt and returns lines of JSON.
//
//     {"say":"Hel"}
//     {"say":"lo"}
//     {"end":"stop","read":12,"written":2}
//
// A response that fails after it has started ends with a line such as {"error":"overloaded"}.
import {
  apiKeySchema,
  defineProvider,
  fail,
  type Call,
  type ChatRequest,
  type ErrorKind,
} from "tollgate/plugin";
import { lines } from "./lines.ts";

export default defineProvider({
  api: 1,
  name: "acme",
  summary: "Acme, through its own API",
  credential: apiKeySchema,
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      base_url: {
        type: "string",
        minLength: 1,
        default: "https://api.acme.example/v1",
        "x-origin": true,
        description: "Base URL of the API",
      },
    },
  },
  setup: ({ base_url }) => ({
    endpoints: [
      {
        operation: "chat",
        base: base_url,
        auth: { header: "authorization", prefix: "Bearer ", field: "api_key" },
        streaming: "always",
        async *run(request, call) {
          const res = await call.fetch("say", {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify(encodeBody(request, call)),
          });
          if (!res.ok) fail(KINDS[res.status] ?? "upstream", `Acme returned status ${res.status}.`);
          yield { type: "start" };
          yield { type: "open", index: 0, block: { type: "text" } };
          for await (const line of lines(res.body)) {
            if (typeof line["say"] === "string")
              yield { type: "delta", index: 0, text: line["say"] };
            if (line["error"] !== undefined)
              fail(line["error"] === "overloaded" ? "overloaded" : "upstream", "Acme failed.");
            if (line["end"] === undefined) continue;
            yield { type: "close", index: 0 };
            yield {
              type: "usage",
              usage: { input: count(line["read"]), output: count(line["written"]) },
            };
            yield { type: "finish", reason: line["end"] === "length" ? "length" : "stop" };
            return;
          }
          fail("upstream", "Acme's response is truncated.");
        },
      },
    ],
  }),
});

/**
 * The kind of an error determines whether the gateway tries another provider and puts this provider
 * in cooldown.
 */
const KINDS: { readonly [status: number]: ErrorKind } = {
  400: "invalid",
  401: "upstream_auth",
  402: "upstream_quota",
  404: "not_found",
  429: "rate_limited",
  503: "overloaded",
};

const count = (value: unknown): number => (typeof value === "number" && value >= 0 ? value : 0);

/** Returns the body of a request. Reports fields that Acme does not support: the client receives a warning, or an error in strict mode. */
function encodeBody(request: ChatRequest, call: Call) {
  const { output, sampling, reasoning } = request;
  const { temperature, ...others } = sampling;
  const names: Readonly<Record<string, string>> = { topP: "top_p", topK: "top_k" };
  for (const [name, value] of Object.entries(others))
    if (value !== undefined) call.reportLoss(names[name] ?? name, "dropped");
  if (output.format && output.format.type !== "text") call.reportLoss("response_format", "dropped");
  if (reasoning.effort !== undefined) call.reportLoss("reasoning_effort", "dropped");
  return {
    model: call.model,
    prompt: promptOf(request),
    // JSON omits undefined fields.
    max: output.maxTokens,
    stop: output.stop,
    temperature,
  };
}

/** Joins the conversation into one text, because Acme has no turns. Rejects unsupported content. */
function promptOf({ instructions, turns, tools }: ChatRequest): string {
  if (tools.length > 0) fail("unsupported", "Acme does not support tools.", { param: "tools" });
  const blocks = [...instructions, ...turns.flatMap((turn) => turn.blocks)];
  return blocks
    .map((block) =>
      block.type === "text" ? block.text : fail("unsupported", "Acme supports only text."),
    )
    .join("\n\n");
}
