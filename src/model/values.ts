// Plain values as they appear in requests and responses. Lowest layer of the model: imports no
// other Tollgate file.
import type { IncomingHttpHeaders } from "node:http";

/**
 * Value that may be `undefined`. Plugins can set a property to `undefined`, so they need no
 * conditional spreads under `exactOptionalPropertyTypes`.
 */
export type Opt<T> = T | undefined;

/**
 * Return type of synchronous functions. Unlike `void`, it does not accept a promise, so an async
 * function is a compile error.
 */
export type Sync = void | undefined;

/** A JSON value. Lists and objects are read-only, because client data is never changed in place. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;

/**
 * A JSON object. A member that is `undefined` is omitted, as in `JSON.stringify`. Codecs may
 * therefore write `{ seed: r.sampling.seed }`.
 */
export type JsonObject = { readonly [key: string]: Opt<Json> };

/**
 * A file in a form. A file from a client is a view of the received bytes, not a copy, and must not
 * be written to.
 */
export interface FilePart {
  /** Name of the file, as the client sent it. */
  filename: string;
  /** Media type of the file, such as `audio/wav`. */
  mime: string;
  /** Bytes of the file. */
  data: Buffer;
}
/** Whether a value is a file. A JSON value is never a file. */
export const isFilePart = (value: unknown): value is FilePart =>
  typeof value === "object" && value !== null && Buffer.isBuffer((value as Partial<FilePart>).data);
/** Value of a top-level field of a body. */
export type Field = Json | FilePart | readonly FilePart[];

/**
 * A parsed request body. A body with a `FilePart` is sent as multipart. Codecs never handle
 * boundaries.
 */
export type Body = { readonly [field: string]: Opt<Field> };

/** Request headers. Names are in lower case. */
export type HeadersIn = Readonly<IncomingHttpHeaders>;
/** Read-only query of a request. */
export type QueryIn = Pick<URLSearchParams, "get" | "getAll" | "has">;
/** Headers to send. Names are in lower case. `undefined` means that the header is not sent. */
export type HeadersOut = Readonly<Record<string, Opt<string>>>;
