import { BoundedMap } from "../lib/bounded-map.ts";
import type { HeadersOut } from "../model/values.ts";

/** How a provider's code reaches its upstream: the contract's Line has it. */
export type ProviderFetch = (
  url: string | URL,
  init?: { method?: string; headers?: HeadersOut; body?: string | Buffer; signal?: AbortSignal },
) => Promise<Response>;

/** Answers are remembered by address. */
const MAX_CACHED = 8;

interface CachedResponse {
  etag: string;
  body: ArrayBuffer;
  contentType: string;
}

/**
 * A memory for one line. Each time the line is asked, its fetch of the day goes through it and asks only for what is
 * new: an answer with an ETag is remembered, and given again when upstream says that it has not changed.
 */
export function createConditionalFetch(): (fetch: ProviderFetch) => ProviderFetch {
  const cache = new BoundedMap<string, CachedResponse>(MAX_CACHED);
  return (fetch) => async (url, init) => {
    const method = init?.method ?? "GET";
    const key = String(url);
    const known = method === "GET" ? cache.get(key) : undefined;
    const answer = await fetch(
      url,
      known ? { ...init, headers: { ...init?.headers, "if-none-match": known.etag } } : init,
    );
    if (known && answer.status === 304) {
      await answer.body?.cancel();
      return toResponse(known);
    }
    cache.delete(key);
    const etag = answer.headers.get("etag");
    if (method !== "GET" || answer.status !== 200 || etag === null) return answer;
    const body = await answer.arrayBuffer();
    const now = { etag, body, contentType: answer.headers.get("content-type") ?? "" };
    cache.set(key, now);
    return toResponse(now);
  };
}

const toResponse = ({ body, contentType, etag }: CachedResponse): Response =>
  new Response(body, { status: 200, headers: { "content-type": contentType, etag } });
