import type { Body, Field, HeadersOut, Opt } from "../model/values.ts";
import type { Outgoing } from "../plugin/outgoing.ts";
import type { Operation, ModelRequest } from "../model/request.ts";
import { findReferences } from "../protocols/references/index.ts";
import type { CallContext, ClientHalf } from "../plugin/protocol.ts";

/** An outgoing request whose edits a test can inspect. */
export interface TestOutgoing extends Outgoing {
  /** Body in its current state. Undefined if there is none. */
  readonly body: Body | undefined;
  /** Top-level fields that were set or removed, in order, each listed once. */
  readonly editedFields: readonly string[];
}

/**
 * Creates an `Outgoing` for tests of `prepare` and of hooks. It records the plugin's edits and does
 * not change the given body. Never throws.
 */
export function createOutgoing(
  body: Body | undefined,
  of: { method?: string; path?: string; headers?: HeadersOut } = {},
): TestOutgoing {
  const fields: { [field: string]: Opt<Field> } = { ...body };
  const headers: { [name: string]: Opt<string> } = { ...of.headers };
  const edited = new Set<string>();
  const set = (field: string, value: Opt<Field>) => {
    if (!body) return;
    edited.add(field);
    if (value === undefined) delete fields[field];
    else fields[field] = value;
  };
  return {
    method: of.method ?? "POST",
    path: of.path ?? "/",
    headers,
    get: (field) => fields[field],
    set,
    remove: (field) => set(field, undefined),
    setHeader(name, value) {
      if (value === undefined) delete headers[name];
      else headers[name] = value;
    },
    references: () => findReferences(fields),
    get body() {
      return body && { ...fields };
    },
    get editedFields() {
      return [...edited];
    },
  };
}

/**
 * Returns the body of a translated request in the form in which the host sends it: encoded, with
 * unknown fields added, and prepared. A field that the codec knows and omits is not added.
 */
export function encodeOutgoing<K extends Operation>(
  client: ClientHalf<K>,
  request: ModelRequest<K>,
  of: CallContext,
): TestOutgoing {
  const out = createOutgoing({ ...request.rest, ...client.encodeRequest(request, of) });
  client.prepare?.(out, of);
  return out;
}
