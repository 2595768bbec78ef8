// The playground's way to a model: what its reader asks goes to the port that clients reach, with the key that the reader has pasted, so
// that every rule and limit holds and the ledger has its row. There is no second way in.
import {
  type RequestHead,
  type Body,
  type Context,
  fail,
  type RouteResponse,
} from "tollgate/plugin";

interface PlaygroundRequest {
  readonly path: string;
  readonly key: string;
  /** The header that it goes in; absent: as a bearer's. */
  readonly keyHeader?: string | undefined;
  readonly zdr?: string | undefined;
  /** The type of a form, whose bytes are then the body, in base64; absent: the body is JSON. */
  readonly formType?: string | undefined;
  readonly body: string;
}

/** What a browser that should ever show an answer by itself must do with it: nothing. */
const SECURITY_HEADERS = {
  "content-security-policy": "default-src 'none'; sandbox; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "cache-control": "no-store",
  "referrer-policy": "no-referrer",
};

/** What the page shows of an answer's head. */
const FORWARDED_HEADERS =
  /^(x-request-id|x-ratelimit-.+|anthropic-ratelimit-.+|retry-after|service-zdr.*|tollgate-.+|x-tollgate-.+|traceparent)$/;

export function createPlaygroundProxy(ctx: Pick<Context, "fetch">) {
  return async (x: RequestHead, body: Body): Promise<RouteResponse> => {
    const { path, key, keyHeader, zdr, formType, body: text } = parsePlaygroundRequest(body);
    const answer = await ctx.fetch(path, {
      method: "POST",
      headers: {
        ...(keyHeader === undefined ? { authorization: `Bearer ${key}` } : { [keyHeader]: key }),
        "content-type": formType ?? "application/json",
        ...(zdr && { "service-zdr": zdr }),
      },
      body: formType === undefined ? text : Buffer.from(text, "base64"),
      signal: x.signal,
    });
    const shown = [...answer.headers].filter(([name]) => FORWARDED_HEADERS.test(name));
    return {
      status: 200,
      headers: {
        ...SECURITY_HEADERS,
        "content-type": "application/octet-stream",
        "x-answer": JSON.stringify({
          status: answer.status,
          type: answer.headers.get("content-type"),
          headers: Object.fromEntries(shown),
        }),
      },
      body: answer.body ? readChunks(answer.body) : Buffer.alloc(0),
    };
  };
}

async function* readChunks(body: NonNullable<Response["body"]>): AsyncGenerator<Uint8Array> {
  for await (const piece of body) yield piece as Uint8Array;
}

/** Characters that may stand in a header's line. */
const HEADER_VALUE = /^[!-~]{1,512}$/;

/** A path of a frontend's, and the one question that Google's clients ask behind it. Nothing in it leads upwards. */
const FRONTEND_PATH =
  /^\/(?:v1|v2|v1beta)(?:\/(?!\.)(?:[\w.:@+~-]|%(?!2e|2f|5c)[\da-f]{2}){1,200}){1,8}(?:\?alt=sse)?$/i;
const KEY_HEADERS: readonly unknown[] = [undefined, "x-api-key", "x-goog-api-key"];
const FORM_TYPE = /^multipart\/form-data; boundary=[\w-]{1,100}$/;

function parsePlaygroundRequest(body: Body): PlaygroundRequest {
  const {
    path,
    key,
    key_header: keyHeader,
    zdr,
    form_type: formType,
    body: text,
  } = body as Record<string, unknown>;
  const flaw =
    typeof path !== "string" || !FRONTEND_PATH.test(path)
      ? "path is a frontend's"
      : typeof key !== "string" || !HEADER_VALUE.test(key)
        ? "key is a key for models"
        : !KEY_HEADERS.includes(keyHeader)
          ? "key_header is x-api-key or x-goog-api-key"
          : zdr !== undefined && (typeof zdr !== "string" || !HEADER_VALUE.test(zdr))
            ? "zdr is a word"
            : formType !== undefined && (typeof formType !== "string" || !FORM_TYPE.test(formType))
              ? "form_type is a form's content type"
              : typeof text !== "string"
                ? "body is the text to send"
                : undefined;
  if (flaw !== undefined)
    fail("invalid", `In what the playground asks, ${flaw}.`, { code: "bad_input" });
  return { path, key, keyHeader, zdr, formType, body: text } as PlaygroundRequest;
}
