// The floor of the vocabulary: plain values as they stand on a wire. Imports nothing of ours.
import type { IncomingHttpHeaders } from "node:http";

/** What a plugin constructs may hold `undefined`: no conditional spreads under exactOptionalPropertyTypes. */
export type Opt<T> = T | undefined;

/** Unlike plain `void` it takes no promise: an async function here is a compile error. */
export type Sync = void | undefined;

/** A value of a JSON text. Lists and objects are read-only: what a client sent is never changed in place. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;

/** `undefined` means absent, as JSON.stringify has it, so codecs may write `{ seed: r.sampling.seed }`. */
export type JsonObject = { readonly [key: string]: Opt<Json> };

/** A file of a form. One that came from a client is a span of the bytes that came: it is no copy, and nothing may write into it. */
export interface FilePart {
  /** Name of the file, as the client sent it. */
  filename: string;
  /** Media type of the file, such as `audio/wav`. */
  mime: string;
  /** Bytes of the file. */
  data: Buffer;
}
/** Whether a value is a file: nothing that was JSON is one. */
export const isFilePart = (value: unknown): value is FilePart =>
  typeof value === "object" && value !== null && Buffer.isBuffer((value as Partial<FilePart>).data);
/** The value of a top-level field of a body. */
export type Field = Json | FilePart | readonly FilePart[];

/** A request's body, parsed. With a FilePart it travels as multipart; codecs never see boundaries. */
export type Body = { readonly [field: string]: Opt<Field> };

/** Names in lower case. */
export type HeadersIn = Readonly<IncomingHttpHeaders>;
/** The query of a request, to be read. */
export type QueryIn = Pick<URLSearchParams, "get" | "getAll" | "has">;
/** Names in lower case; `undefined` means absent. */
export type HeadersOut = Readonly<Record<string, Opt<string>>>;
