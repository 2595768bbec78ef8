// The answer to a provider's own fetch, as the plugin reads it.
import type { Dispatcher } from "undici";
import { BOUNDS, type BoundName } from "../../lib/bounds.ts";
import { failBoundExceeded } from "../../model/bound-exceeded.ts";
import { hasBody, trackBody } from "../../pipeline/exchange/tracked-body.ts";

/** How much of a body that its reader has left is read for the sake of its connection, and for how long. */
const DISCARD_LIMITS = { limit: 128 * 1024, ms: 1_000 };

interface ProviderResponseOptions {
  /** The most that a body may have. */
  readonly bound: BoundName;
  /** Whether a body is passed on as it comes. */
  readonly isStreamed: boolean;
  /** Throws the fault of a body that breaks off. */
  onBodyError(problem: unknown): never;
}

/**
 * The answer to a call is there with its head, and its body is passed on as it comes. Any other answer, and any refusal, is there
 * when it is whole: a plugin that does not read it keeps no connection.
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
