// The playground's way to a model: what its reader asks goes to the port that clients reach, with the key that the reader has pasted, so
// that every rule and limit holds and the ledger has its row. There is no second way in.
import { type Arrival, type Body, type Context, fail, type ServedAnswer } from "tollgate/plugin";

interface Asked {
  readonly path: string;
  readonly key: string;
  /** The header that it goes in; absent: as a bearer's. */
  readonly as?: string | undefined;
  readonly zdr?: string | undefined;
  readonly body: string;
}

/** What a browser that should ever show an answer by itself must do with it: nothing. */
const GUARDS = {
  "content-security-policy": "default-src 'none'; sandbox; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "cache-control": "no-store",
  "referrer-policy": "no-referrer",
};

/** What the page shows of an answer's head. */
const SHOWN =
  /^(x-request-id|x-ratelimit-.+|anthropic-ratelimit-.+|retry-after|service-zdr.*|tollgate-.+|x-tollgate-.+|traceparent)$/;

export function askingBy(ctx: Pick<Context, "fetch">) {
  return async (x: Arrival, body: Body): Promise<ServedAnswer> => {
    const { path, key, as, zdr, body: text } = askedOf(body);
    const answer = await ctx.fetch(path, {
      method: "POST",
      headers: {
        ...(as === undefined ? { authorization: `Bearer ${key}` } : { [as]: key }),
        "content-type": "application/json",
        ...(zdr && { "service-zdr": zdr }),
      },
      body: text,
      signal: x.signal,
    });
    const shown = [...answer.headers].filter(([name]) => SHOWN.test(name));
    return {
      status: 200,
      headers: {
        ...GUARDS,
        "content-type": "application/octet-stream",
        "x-answer": JSON.stringify({
          status: answer.status,
          type: answer.headers.get("content-type"),
          headers: Object.fromEntries(shown),
        }),
      },
      body: answer.body ? pieces(answer.body) : Buffer.alloc(0),
    };
  };
}

async function* pieces(body: NonNullable<Response["body"]>): AsyncGenerator<Uint8Array> {
  for await (const piece of body) yield piece as Uint8Array;
}

/** Characters that may stand in a header's line. */
const WORD = /^[!-~]{1,512}$/;

function askedOf(body: Body): Asked {
  const { path, key, as, zdr, body: text } = body as Record<string, unknown>;
  const flaw =
    typeof path !== "string" || !/^\/v1\/[\w/-]{1,100}$/.test(path)
      ? "path is one below /v1/"
      : typeof key !== "string" || !WORD.test(key)
        ? "key is a key for models"
        : as !== undefined && as !== "x-api-key"
          ? "as is x-api-key"
          : zdr !== undefined && (typeof zdr !== "string" || !WORD.test(zdr))
            ? "zdr is a word"
            : typeof text !== "string"
              ? "body is the text to send"
              : undefined;
  if (flaw !== undefined)
    fail("invalid", `In what the playground asks, ${flaw}.`, { code: "bad_input" });
  return { path, key, as, zdr, body: text } as Asked;
}
