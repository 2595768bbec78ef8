// Creates the response that a plugin receives from its provider's `fetch`.
import type { Dispatcher } from "undici";
import { BOUNDS, type BoundName } from "../../lib/bounds.ts";
import { failBoundExceeded } from "../../model/bound-exceeded.ts";
import { hasBody, trackBody } from "../../pipeline/exchange/plugin-fetch.ts";

/**
 * How much of an abandoned body is read so that its connection can be reused, in bytes and
 * milliseconds.
 */
const DISCARD_LIMITS = { limit: 128 * 1024, ms: 1_000 };

interface ProviderResponseOptions {
  /** Size limit of the body. */
  readonly bound: BoundName;
  /** Whether the body is streamed. */
  readonly isStreamed: boolean;
  /** Throws the fault for a truncated body. */
  onBodyError(problem: unknown): never;
}

/**
 * Creates the response. A successful streamed response resolves with its head. Any other response
 * resolves when it is complete, so that a plugin that does not read it holds no connection.
 */
export async function toProviderResponse(
  { statusCode: status, headers: said, body }: Dispatcher.ResponseData,
  { bound, isStreamed, onBodyError }: ProviderResponseOptions,
): Promise<Response> {
  const headers = new Headers();
  for (const [name, value] of Object.entries(said))
    for (const one of [value ?? []].flat()) headers.append(name, one);
  const pieces = body[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  let size = 0;
  const next = async () => {
    try {
      const { done, value } = await pieces.next();
      if (done) return undefined;
      size += value.length;
      if (size <= BOUNDS[bound].max) return value;
      body.destroy();
      return failBoundExceeded(bound);
    } catch (problem) {
      return onBodyError(problem);
    }
  };
  const cancel = () => {
    if (!body.readableEnded)
      body
        .dump({ limit: DISCARD_LIMITS.limit, signal: AbortSignal.timeout(DISCARD_LIMITS.ms) })
        .catch(() => body.destroy());
  };
  if (isStreamed && status < 300) return trackBody({ next, cancel }, { status, headers });
  const all: Buffer[] = [];
  for (let piece = await next(); piece; piece = await next()) all.push(piece);
  return new Response(hasBody(status) ? Buffer.concat(all) : null, { status, headers });
}
