import type { Field, HeadersOut, Opt } from "../model/values.ts";
import type { References } from "./references.ts";

/**
 * A request that is about to be sent to a provider. Edits are kept by top-level field and spliced
 * into the client's JSON or form, so that editing does not force translation. If a field is set to
 * a file, the body is sent as a form.
 */
export interface Outgoing {
  /** HTTP method. */
  readonly method: string;
  /** Path of the request URL. */
  readonly path: string;
  /** Headers as they will be sent, without the credential. */
  readonly headers: HeadersOut;
  /** Returns a top-level field as it will be sent, including edits. */
  get(field: string): Opt<Field>;
  /** Sets a top-level field. If there is no body, `set` and `remove` do nothing. */
  set(field: string, value: Opt<Field>): void;
  /** Removes a top-level field. */
  remove(field: string): void;
  /** Sets a header. Without a value, removes it. */
  setHeader(name: string, value?: string): void;
  /** Returns the models, tools, and stored content that the current body refers to. */
  references?(): References;
}
