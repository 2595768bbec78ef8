import { defineMiddleware, fail, type Block, type Exchange } from "tollgate/plugin";

/** The response of the service. Any other response counts as a failure. */
interface Verdict {
  readonly allow: boolean;
  /** A label for the ledger, such as "injection". Never text of the request. */
  readonly label?: string;
}

/** Yields every text of a conversation with its role. Tool results have their own role, because injections come from them. */
function* texts(role: string, blocks: readonly Block[]): Generator<{ role: string; text: string }> {
  for (const block of blocks)
    if (block.type === "text") yield { role, text: block.text };
    else if (block.type === "call") yield { role, text: block.args };
    else if (block.type === "result") yield* texts("tool", block.blocks);
}

/** Returns the body for the service. Requests that are not chats are sent completely. */
function encodeRequest({ request }: Exchange): unknown {
  if (request.operation !== "chat") return { kind: request.operation, request };
  const turns = request.turns.flatMap(({ role, blocks }) => [...texts(role, blocks)]);
  return { kind: "chat", texts: [...texts("system", request.instructions), ...turns] };
}

const isVerdict = (value: unknown): value is Verdict =>
  typeof (value as Verdict | null)?.allow === "boolean";

export default defineMiddleware({
  api: 1,
  name: "remote-guard",
  summary: "Calls a service that allows or rejects a request, in parallel with the model",
  // The data policy of the service is unknown, so requests under Service-ZDR are rejected.
  sends: { retention: { kind: "unknown" }, trains: "unknown" },
  options: {
    type: "object",
    additionalProperties: false,
    required: ["url"],
    properties: {
      url: { type: "string", format: "uri", "x-origin": true, description: "URL of the service" },
      token: {
        type: "string",
        minLength: 1,
        "x-secret": true,
        description: "Bearer token for the service",
      },
      timeout_ms: {
        type: "integer",
        minimum: 1,
        default: 2_000,
        description: "Time limit in milliseconds. After it, the request is rejected",
      },
    },
  },
  setup({ url, token, timeout_ms }, ctx) {
    const verdicts = new WeakMap<Exchange, Promise<Verdict>>();

    async function callService(x: Exchange): Promise<Verdict> {
      try {
        const res = await ctx.fetch(url, {
          method: "POST",
          headers: {
            "content-type": "application/json",
            ...(token !== undefined && { authorization: `Bearer ${token}` }),
          },
          body: JSON.stringify(encodeRequest(x)),
          signal: AbortSignal.any([x.signal, AbortSignal.timeout(timeout_ms)]),
        });
        const verdict: unknown = await res.json();
        if (res.ok && isVerdict(verdict)) return verdict;
        ctx.log.warn({ status: res.status }, "guard service returned no verdict");
      } catch (error) {
        ctx.log.warn({ error }, "guard service unreachable");
      }
      return fail("unavailable", "The guard service is unavailable. Retry later.", {
        code: "guard_unavailable",
      });
    }

    return {
      // Calls the service and the model in parallel, so the verdict adds time only if it takes longer than the first token. Nothing is
      // sent to the client before the verdict.
      async attempt(call, next) {
        const x = call.exchange;
        // Called once per request, regardless of the number of tried candidates.
        const verdict = verdicts.get(x) ?? callService(x);
        verdicts.set(x, verdict);
        const checked = verdict.then(({ allow, label }) => {
          if (label !== undefined) x.addLabel("remote-guard", label.slice(0, 64));
          if (!allow)
            fail("content_policy", "The guard service rejected this request.", {
              code: "guard_rejected",
            });
        });
        const [, reply] = await Promise.all([checked, next()]);
        return reply;
      },
    };
  },
});
