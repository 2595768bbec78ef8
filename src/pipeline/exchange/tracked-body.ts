// Creates a response whose body is read in chunks and which reports the end of the body. An
// endpoint that sends requests itself receives the response as soon as its headers arrive, and the
// host still learns when the body ends.

/** Statuses of responses that have no body. */
const BODILESS_STATUSES = new Set([101, 204, 205, 304]);

export const hasBody = (status: number): boolean => !BODILESS_STATUSES.has(status);

export interface BodySource {
  /** Returns the next chunk, or undefined at the end. Rejects if the body is truncated. */
  next(): Promise<Uint8Array | undefined>;
  /** Called once, when the reader cancels. */
  cancel(): void;
}

/**
 * Returns a response that takes chunks from `source` only as they are read.
 * @param over Called once: at the end of the body, when it is truncated, or when the reader cancels
 *   it.
 */
export function trackBody(
  source: BodySource,
  { status, headers }: { readonly status: number; readonly headers: Headers },
  onDone: () => void = () => {},
): Response {
  if (!hasBody(status)) {
    source.cancel();
    onDone();
    return new Response(null, { status, headers });
  }
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const piece = await source.next();
          if (piece !== undefined) return controller.enqueue(piece);
          onDone();
          controller.close();
        } catch (problem) {
          onDone();
          controller.error(problem);
        }
      },
      cancel() {
        source.cancel();
        onDone();
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { status, headers });
}
