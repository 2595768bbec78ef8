import { defineMiddleware, fail, type Block, type Exchange } from "tollgate/plugin";

/** What the service answers. Anything else is taken for no answer. */
interface Verdict {
  readonly allow: boolean;
  /** A word for the ledger, such as "injection": never what was said. */
  readonly label?: string;
}

/** Every text of a conversation, with whose it is: what a tool brought is where injections come from. */
function* said(role: string, blocks: readonly Block[]): Generator<{ role: string; text: string }> {
  for (const block of blocks)
    if (block.type === "text") yield { role, text: block.text };
    else if (block.type === "call") yield { role, text: block.args };
    else if (block.type === "result") yield* said("tool", block.blocks);
}

/** Of a request of another kind all that it says: a service that cannot read it may say so. */
function askedIn({ request }: Exchange): unknown {
  if (request.operation !== "chat") return { kind: request.operation, request };
  const texts = request.turns.flatMap(({ role, blocks }) => [...said(role, blocks)]);
  return { kind: "chat", texts: [...said("system", request.instructions), ...texts] };
}

const isVerdict = (value: unknown): value is Verdict =>
  typeof (value as Verdict | null)?.allow === "boolean";

export default defineMiddleware({
  api: 1,
  name: "remote-guard",
  summary: "Asks a service whether a request may be answered, while the model is at it",
  // Whose service it is and what it keeps is not known here, so a request under ZDR does not pass.
  sends: { retention: { kind: "unknown" }, trains: "unknown" },
  options: {
    type: "object",
    additionalProperties: false,
    required: ["url"],
    properties: {
      url: { type: "string", format: "uri", "x-origin": true, description: "The service" },
      token: { type: "string", minLength: 1, "x-secret": true, description: "What it is shown" },
      timeout_ms: {
        type: "integer",
        minimum: 1,
        default: 2_000,
        description: "How long it may take; then the request is refused",
      },
    },
  },
  setup({ url, token, timeout_ms }, ctx) {
    const verdicts = new WeakMap<Exchange, Promise<Verdict>>();

    async function judged(x: Exchange): Promise<Verdict> {
      try {
        const answer = await ctx.fetch(url, {
          method: "POST",
          headers: {
            "content-type": "application/json",
            ...(token !== undefined && { authorization: `Bearer ${token}` }),
          },
          body: JSON.stringify(askedIn(x)),
          signal: AbortSignal.any([x.signal, AbortSignal.timeout(timeout_ms)]),
        });
        const verdict: unknown = await answer.json();
        if (answer.ok && isVerdict(verdict)) return verdict;
        ctx.log.warn({ status: answer.status }, "the guard's service gave no verdict");
      } catch (error) {
        ctx.log.warn({ error }, "the guard's service was not reached");
      }
      return fail("unavailable", "Whether this request is allowed could not be found out.", {
        code: "guard_unavailable",
      });
    }

    return {
      // Both at once: the verdict costs no time unless it takes longer than the model's first word. Nothing has left before it.
      async attempt(call, next) {
        const x = call.exchange;
        // Asked once, however many candidates are tried.
        const asked = verdicts.get(x) ?? judged(x);
        verdicts.set(x, asked);
        const refusing = asked.then(({ allow, label }) => {
          if (label !== undefined) x.addLabel("remote-guard", label.slice(0, 64));
          if (!allow)
            fail("content_policy", "This request is not allowed here.", { code: "guard_refused" });
        });
        const [, reply] = await Promise.all([refusing, next()]);
        return reply;
      },
    };
  },
});
