// Forwards the playground's requests to the port that clients use, with the API key that the reader
// pasted. All rules and limits apply, and the ledger records each call. The playground has no other
// way to call a model.
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
  /** Header for the key. Default: `authorization` with a bearer token. */
  readonly keyHeader?: string | undefined;
  readonly zdr?: string | undefined;
  /** Content type of a form, whose bytes are in `body` as base64. If unset, the body is JSON. */
  readonly formType?: string | undefined;
  readonly body: string;
}

/** Headers that prevent a browser from rendering a response that it opens directly. */
export const SECURITY_HEADERS = {
  "content-security-policy": "default-src 'none'; sandbox; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "cache-control": "no-store",
  "referrer-policy": "no-referrer",
};

/** Response headers that the page shows. */
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

/** Characters allowed in a header value. */
export const HEADER_VALUE = /^[!-~]{1,512}$/;

/**
 * A frontend's path, optionally followed by `?alt=sse`, which Google's clients send. The pattern
 * excludes path traversal.
 */
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
      ? "path must be the path of a frontend"
      : typeof key !== "string" || !HEADER_VALUE.test(key)
        ? "key must be an API key"
        : !KEY_HEADERS.includes(keyHeader)
          ? "key_header must be x-api-key or x-goog-api-key"
          : zdr !== undefined && (typeof zdr !== "string" || !HEADER_VALUE.test(zdr))
            ? "zdr must be a valid header value"
            : formType !== undefined && (typeof formType !== "string" || !FORM_TYPE.test(formType))
              ? "form_type must be the content type of a form"
              : typeof text !== "string"
                ? "body must be a string"
                : undefined;
  if (flaw !== undefined)
    fail("invalid", `Invalid playground request: ${flaw}.`, { code: "bad_input" });
  return { path, key, keyHeader, zdr, formType, body: text } as PlaygroundRequest;
}
