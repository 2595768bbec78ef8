// Acme has an API of its own: POST /say takes a prompt, and answers with lines of JSON.
//
//     {"say":"Hel"}
//     {"say":"lo"}
//     {"end":"stop","read":12,"written":2}
//
// An answer that fails after it has begun ends with a line such as {"error":"overloaded"}.
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
  summary: "Acme, by its own API",
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
        description: "Where Acme listens",
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
          const answer = await call.fetch("say", {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify(bodyOf(request, call)),
          });
          if (!answer.ok) fail(KINDS[answer.status] ?? "upstream", `Acme said ${answer.status}.`);
          yield { type: "start" };
          yield { type: "open", index: 0, block: { type: "text" } };
          for await (const line of lines(answer.body)) {
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
          fail("upstream", "Acme broke off.");
        },
      },
    ],
  }),
});

/** What a refusal means decides what the gateway does next: try another provider, rest this one, or neither. */
const KINDS: { readonly [status: number]: ErrorKind } = {
  400: "invalid",
  401: "upstream_auth",
  402: "upstream_quota",
  404: "not_found",
  429: "rate_limited",
  503: "overloaded",
};

const count = (value: unknown): number => (typeof value === "number" && value >= 0 ? value : 0);

/** The body of a request. A field that Acme does not have is reported: the client gets a warning, or an error if it asked for strictness. */
function bodyOf(request: ChatRequest, call: Call) {
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
    // JSON leaves out what is undefined.
    max: output.maxTokens,
    stop: output.stop,
    temperature,
  };
}

/** Acme has no turns: the conversation becomes one text. Content that it cannot take is refused. */
function promptOf({ instructions, turns, tools }: ChatRequest): string {
  if (tools.length > 0) fail("unsupported", "Acme knows no tools.", { param: "tools" });
  const blocks = [...instructions, ...turns.flatMap((turn) => turn.blocks)];
  return blocks
    .map((block) => (block.type === "text" ? block.text : fail("unsupported", "Acme reads text.")))
    .join("\n\n");
}
