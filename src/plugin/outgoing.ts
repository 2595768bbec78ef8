import type { Field, HeadersOut, Opt } from "../model/values.ts";
import type { References } from "./references.ts";

/**
 * The request about to leave. Edits are kept by top-level field and spliced into the client's bytes, JSON or a form, so that editing
 * closes no lane. A body into which a file is set leaves as a form.
 */
export interface Outgoing {
  /** HTTP method. */
  readonly method: string;
  /** Path of the request URL. */
  readonly path: string;
  /** Headers as they will be sent, without the credential. */
  readonly headers: HeadersOut;
  /** A top-level field as it will leave, edits included. */
  get(field: string): Opt<Field>;
  /** Without a body, set and drop do nothing. */
  set(field: string, value: Opt<Field>): void;
  /** Takes a field out. */
  remove(field: string): void;
  /** No value: remove. */
  setHeader(name: string, value?: string): void;
  /** What it names that is not its own, as it stands now. */
  references?(): References;
}
