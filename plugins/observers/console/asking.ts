// The playground's way to a model: what its reader asks goes to the port that clients reach, with the key that the reader has pasted, so
// that every rule and limit holds and the ledger has its row. There is no second way in.
import { type Arrival, type Body, type Context, fail, type ServedAnswer } from "tollgate/plugin";

interface Asked {
  readonly path: string;
  readonly key: string;
  /** The header that it goes in; absent: as a bearer's. */
  readonly as?: string | undefined;
  readonly zdr?: string | undefined;
  /** The type of a form, whose bytes are then the body, in base64; absent: the body is JSON. */
  readonly form?: string | undefined;
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
    const { path, key, as, zdr, form, body: text } = askedOf(body);
    const answer = await ctx.fetch(path, {
      method: "POST",
      headers: {
        ...(as === undefined ? { authorization: `Bearer ${key}` } : { [as]: key }),
        "content-type": form ?? "application/json",
        ...(zdr && { "service-zdr": zdr }),
      },
      body: form === undefined ? text : Buffer.from(text, "base64"),
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

/** A path of a frontend's, and the one question that Google's clients ask behind it. Nothing in it leads upwards. */
const PATH =
  /^\/(?:v1|v2|v1beta)(?:\/(?!\.)(?:[\w.:@+~-]|%(?!2e|2f|5c)[\da-f]{2}){1,200}){1,8}(?:\?alt=sse)?$/i;
const HEADERS: readonly unknown[] = [undefined, "x-api-key", "x-goog-api-key"];
const FORM = /^multipart\/form-data; boundary=[\w-]{1,100}$/;

function askedOf(body: Body): Asked {
  const { path, key, as, zdr, form, body: text } = body as Record<string, unknown>;
  const flaw =
    typeof path !== "string" || !PATH.test(path)
      ? "path is a frontend's"
      : typeof key !== "string" || !WORD.test(key)
        ? "key is a key for models"
        : !HEADERS.includes(as)
          ? "as is x-api-key or x-goog-api-key"
          : zdr !== undefined && (typeof zdr !== "string" || !WORD.test(zdr))
            ? "zdr is a word"
            : form !== undefined && (typeof form !== "string" || !FORM.test(form))
              ? "form is a form's content type"
              : typeof text !== "string"
                ? "body is the text to send"
                : undefined;
  if (flaw !== undefined)
    fail("invalid", `In what the playground asks, ${flaw}.`, { code: "bad_input" });
  return { path, key, as, zdr, form, body: text } as Asked;
}
