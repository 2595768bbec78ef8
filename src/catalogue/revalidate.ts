import { BoundedMap } from "../lib/bounded-map.ts";
import type { HeadersOut } from "../model/values.ts";

/** How a provider's code reaches its upstream: the contract's Line has it. */
export type Fetch = (
  url: string | URL,
  init?: { method?: string; headers?: HeadersOut; body?: string | Buffer; signal?: AbortSignal },
) => Promise<Response>;

/** Answers are remembered by address. */
const MOST_KEPT = 8;

interface TaggedAnswer {
  etag: string;
  body: ArrayBuffer;
  mime: string;
}

/**
 * A memory for one line. Each time the line is asked, its fetch of the day goes through it and asks only for what is
 * new: an answer with an ETag is remembered, and given again when upstream says that it has not changed.
 */
export function revalidating(): (fetch: Fetch) => Fetch {
  const kept = new BoundedMap<string, TaggedAnswer>(MOST_KEPT);
  return (fetch) => async (url, init) => {
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
    kept.delete(key);
    const etag = answer.headers.get("etag");
    if (method !== "GET" || answer.status !== 200 || etag === null) return answer;
    const body = await answer.arrayBuffer();
    const now = { etag, body, mime: answer.headers.get("content-type") ?? "" };
    kept.set(key, now);
    return again(now);
  };
}

const again = ({ body, mime, etag }: TaggedAnswer): Response =>
  new Response(body, { status: 200, headers: { "content-type": mime, etag } });
