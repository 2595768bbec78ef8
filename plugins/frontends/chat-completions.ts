// The chat completions endpoint: what OpenAI's SDKs and nearly everybody else calls.
import { defineFrontend, fail, type HeadersIn } from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { accept, presented, sent, type Scheme } from "./presented.ts";

/** As users write a base address: with the version, without, or with it twice. A trailing slash is no other path. */
const at = (path: string) => [`/v1${path}`, path, `/v1/v1${path}`] as const;

export default defineFrontend({
  api: 1,
  name: "chat-completions",
  summary: "OpenAI chat completions: POST /v1/chat/completions",
  stability: "beta",
  options: {
    type: "object",
    additionalProperties: false,
    properties: { accept: accept("bearer") },
  },
  setup: ({ accept: schemes }) => ({
    protocol: chatCompletions(),
    secret: (headers) => secretOf(headers, schemes),
    routes: [{ method: "POST", path: at("/chat/completions"), op: "generate" }],
  }),
});

/** Clients send one key in two headers; two keys are two people, and nobody can say who is asking. */
function secretOf(headers: HeadersIn, schemes: readonly Scheme[]): string | undefined {
  const [bearer, bare] = [sent(headers, "bearer"), sent(headers, "x-api-key")];
  if (bearer !== undefined && bare !== undefined && bearer !== bare)
    fail("unauthenticated", "Authorization and x-api-key bring two different keys. Send one.", {
      code: "invalid_api_key",
    });
  return presented(headers, schemes);
}
