// A response whose body is read piece by piece, with a call at its end: an endpoint that sends by itself gets it as soon as the head is
// here, and the host still knows when the body is over.

/** Statuses of responses that have no body. */
const BODILESS_STATUSES = new Set([101, 204, 205, 304]);

export const hasBody = (status: number): boolean => !BODILESS_STATUSES.has(status);

export interface BodySource {
  /** The next piece, or undefined at the end. Rejects when the body breaks off. */
  next(): Promise<Uint8Array | undefined>;
  /** Called once, when the reader wants no more. */
  cancel(): void;
}

/**
 * Returns a response that takes pieces from `source` only as they are read.
 * @param over Called once: at the end of the body, when it breaks off, or when the reader cancels it.
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
