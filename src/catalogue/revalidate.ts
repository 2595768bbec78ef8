import { fail } from "../model/error.ts";
import type { HeadersOut } from "../model/values.ts";

/** How a provider's code reaches its upstream: the contract's Line has it. */
export type Fetch = (
  url: string | URL,
  init?: { method?: string; headers?: HeadersOut; body?: string | Buffer; signal?: AbortSignal },
) => Promise<Response>;

/** Bytes of one answer to a question for models; the longest known list is a tenth of it. */
export const LIST_CAP = 16 * 1024 * 1024;
/** Answers are remembered by address. */
const MOST_KEPT = 8;

interface Kept {
  etag: string;
  body: Buffer;
  mime: string;
}

/**
 * The same fetch for one line, asking only for what is new: an answer with an ETag is remembered, and when upstream
 * says that it has not changed, it is given again. Answers beyond the cap are refused while they are still arriving.
 */
export function revalidating(fetch: Fetch, cap = LIST_CAP): Fetch {
  const kept = new Map<string, Kept>();
  return async (url, init) => {
    const method = init?.method ?? "GET";
    const key = String(url);
    const known = method === "GET" ? kept.get(key) : undefined;
    const answer = await fetch(
      url,
      known ? { ...init, headers: { ...init?.headers, "if-none-match": known.etag } } : init,
    );
    if (known && answer.status === 304) {
      await answer.body?.cancel();
      return again(known);
    }
    const body = await limited(answer, cap);
    const etag = answer.headers.get("etag");
    kept.delete(key);
    if (method === "GET" && answer.status === 200 && etag !== null) {
      kept.set(key, { etag, body, mime: answer.headers.get("content-type") ?? "" });
      if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value!);
    }
    const empty = answer.status === 204 || answer.status === 304;
    return new Response(empty ? null : new Uint8Array(body), {
      status: answer.status,
      headers: answer.headers,
    });
  };
}

const again = ({ body, mime, etag }: Kept): Response =>
  new Response(new Uint8Array(body), { status: 200, headers: { "content-type": mime, etag } });

async function limited(answer: Response, cap: number): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of (answer.body ?? []) as AsyncIterable<Uint8Array>) {
    size += part.length;
    if (size > cap)
      fail("upstream", `The list of models is larger than ${cap} bytes.`, {
        code: "bad_model_list",
      });
    parts.push(part);
  }
  return Buffer.concat(parts, size);
}
