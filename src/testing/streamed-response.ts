import type { StreamedResponse } from "../plugin/context.ts";
import { readBoundedBody } from "../lib/net/bounded-body.ts";

/** Converts the response of a test to one of `ctx.fetchStream`. */
export const toStreamedResponse = (response: Response): StreamedResponse => ({
  status: response.status,
  headers: Object.fromEntries(response.headers),
  bytes: (maxBytes) => readBoundedBody(response.body, maxBytes),
  async read(onPiece) {
    for await (const piece of response.body ?? []) onPiece(Buffer.from(piece));
  },
  cancel() {
    if (!response.bodyUsed) void response.body?.cancel();
  },
});
