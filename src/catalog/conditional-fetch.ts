import { BoundedMap } from "../lib/bounded-map.ts";
import type { HeadersOut } from "../model/values.ts";

/** Sends a request from provider code to its upstream. Exposed by `Line` in the plugin contract. */
export type ProviderFetch = (
  url: string | URL,
  init?: { method?: string; headers?: HeadersOut; body?: string | Buffer; signal?: AbortSignal },
) => Promise<Response>;

/** Maximum number of responses that are cached, by URL. */
const MAX_CACHED = 8;

interface CachedResponse {
  etag: string;
  body: ArrayBuffer;
  contentType: string;
}

/**
 * Creates a cache for one line and returns a wrapper for its fetch function. Responses with an ETag
 * are cached and returned again when upstream replies that they have not changed. The wrapper is
 * applied to a new fetch function each time the line is queried.
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
