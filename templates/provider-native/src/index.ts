// Acme has a wire of its own: POST /say takes a prompt, and answers lines of JSON.
//
//     {"say":"Hel"}
//     {"say":"lo"}
//     {"end":"stop","read":12,"written":2}
import { apiKey, defineProvider, fail, type ChatRequest, type ErrorKind } from "tollgate/plugin";
import { lines } from "./lines.ts";

export default defineProvider({
  api: 1,
  name: "acme",
  summary: "Acme, by its own API",
  credential: apiKey,
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
        kind: "chat",
        base: base_url,
        auth: { header: "authorization", prefix: "Bearer ", field: "api_key" },
        streams: "always",
        async *run(request, call) {
          const answer = await call.fetch("say", {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify({ model: call.model, prompt: promptOf(request) }),
          });
          if (!answer.ok) fail(KINDS[answer.status] ?? "upstream", `Acme said ${answer.status}.`);
          yield { type: "start" };
          yield { type: "open", index: 0, block: { type: "text" } };
          for await (const line of lines(answer.body)) {
            if (typeof line["say"] === "string")
              yield { type: "delta", index: 0, text: line["say"] };
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

/** Acme knows no turns: what was said is one text. What it cannot say is refused, never left out in silence. */
function promptOf({ instructions, turns, tools }: ChatRequest): string {
  if (tools.length > 0) fail("unsupported", "Acme knows no tools.", { param: "tools" });
  const blocks = [...instructions, ...turns.flatMap((turn) => turn.blocks)];
  return blocks
    .map((block) => (block.type === "text" ? block.text : fail("unsupported", "Acme reads text.")))
    .join("\n\n");
}
