// Reads responses of batch APIs: JSON objects, errors, and files of JSON Lines that are larger than
// memory.
import { BOUNDS } from "../../lib/bounds.ts";
import { readBoundedBody } from "../../lib/net/bounded-body.ts";
import {
  type BatchClient,
  createFault,
  fail,
  type HeadersOut,
  type JsonObject,
} from "../../plugin/index.ts";
import { parseError } from "../failure/parse-error.ts";
import { parseObject } from "../json-values.ts";

type FetchOptions = Parameters<BatchClient["fetch"]>[1];

/** Throws the provider's error if the response has an error status. */
export async function requireSuccess(response: Response): Promise<Response> {
  if (response.ok) return response;
  const body = Buffer.from(await response.arrayBuffer());
  const { kind, message, ...more } = parseError(
    response.status,
    Object.fromEntries(response.headers),
    body,
  );
  throw createFault(kind, message, more);
}

/** Sends a request to a batch API, and returns the object of its response. */
export async function fetchObject(
  client: BatchClient,
  url: string | URL,
  options?: FetchOptions,
): Promise<JsonObject> {
  return readObject(await client.fetch(url, options));
}

/** Maximum size of an object, in bytes. A page of a list has 100 batches. */
const MAX_OBJECT_BYTES = 16 * 1024 * 1024;

/** The host does not limit the size of a response to a batch client, so it is limited here. */
async function readObject(response: Response): Promise<JsonObject> {
  const { body } = await requireSuccess(response);
  const bytes = await readBoundedBody(body, MAX_OBJECT_BYTES);
  if (!bytes)
    return fail("upstream", "The response of the batch API is too large.", { code: "bad_answer" });
  const object = parseObject(bytes.toString());
  return (
    object ?? fail("upstream", "The batch API returned no JSON object.", { code: "bad_answer" })
  );
}

/** Returns the pieces of a body. */
const bodyOf = ({ body }: Response): AsyncIterable<Uint8Array> =>
  (body as AsyncIterable<Uint8Array> | null) ?? NOTHING;
const NOTHING: AsyncIterable<Uint8Array> = { async *[Symbol.asyncIterator]() {} };

/**
 * Creates an object, and returns it. If the provider rejects the request, `undo` deletes the objects
 * that were created for it. After any other failure, the object may exist and need them.
 */
export async function createObject(
  client: BatchClient,
  url: string,
  body: JsonObject,
  undo: () => Promise<void>,
): Promise<JsonObject> {
  const response = await client.fetch(url, jsonRequest(body));
  // The rejection is more useful than an error of the deletion.
  if (response.status >= 400 && response.status < 500) await undo().catch(() => {});
  return readObject(response);
}

/** Returns the options of a request with a JSON body. */
export const jsonRequest = (body: JsonObject): NonNullable<FetchOptions> => ({
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify(body),
});

/** Statuses of a request to an object that does not exist any more. */
const GONE: ReadonlySet<number> = new Set([404, 410]);

/** Deletes an object. Deleting it twice changes nothing. */
export async function deleteObject(
  client: BatchClient,
  url: string,
  headers: HeadersOut = {},
): Promise<void> {
  const response = await client.fetch(url, { method: "DELETE", headers });
  if (GONE.has(response.status)) await response.body?.cancel();
  else await (await requireSuccess(response)).body?.cancel();
}

/**
 * Requests a cancellation. If the provider rejects it, the state decides: a batch that has ended
 * cannot be canceled, and needs no cancellation.
 */
export async function requestCancellation(
  client: BatchClient,
  url: string,
  hasEnded: () => Promise<boolean>,
  options: FetchOptions = { method: "POST" },
): Promise<void> {
  const response = await client.fetch(url, options);
  const isRejected = response.status === 400 || response.status === 409 || response.status === 422;
  if (isRejected && (await hasEnded())) return;
  await (await requireSuccess(response)).body?.cancel();
}

/**
 * Returns the objects of a file of JSON Lines, as it arrives. Lines that are no objects or longer
 * than a request body may be are skipped.
 */
export async function* fetchJsonLines(
  client: BatchClient,
  url: string,
  options?: FetchOptions,
): AsyncGenerator<JsonObject> {
  const response = await client.fetch(url, options);
  if (GONE.has(response.status)) {
    await response.body?.cancel();
    fail("not_found", "The results of the batch were deleted at the provider.", {
      code: "results_deleted",
    });
  }
  yield* readJsonLines(bodyOf(await requireSuccess(response)));
}

const LF = 10;

/** Returns the objects in a stream of JSON Lines. */
export async function* readJsonLines(
  pieces: AsyncIterable<Uint8Array>,
  maxLineBytes: number = BOUNDS.body.max,
): AsyncGenerator<JsonObject> {
  let held: Buffer[] = [];
  let size = 0;
  const endLine = (last: Buffer): JsonObject | undefined => {
    const length = size + last.length;
    const line = length > maxLineBytes || length === 0 ? undefined : Buffer.concat([...held, last]);
    held = [];
    size = 0;
    return line && parseObject(line.toString());
  };
  for await (const piece of pieces) {
    const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
    let from = 0;
    for (let end = bytes.indexOf(LF); end >= 0; end = bytes.indexOf(LF, from)) {
      const object = endLine(bytes.subarray(from, end));
      from = end + 1;
      if (object) yield object;
    }
    size += bytes.length - from;
    // Nothing is kept of a line that is too long.
    if (size <= maxLineBytes) held.push(bytes.subarray(from));
    else held = [];
  }
  const object = endLine(Buffer.alloc(0));
  if (object) yield object;
}
