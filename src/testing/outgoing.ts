import type { Body, Field, HeadersOut, Opt } from "../model/values.ts";
import type { Outgoing } from "../plugin/outgoing.ts";
import type { Operation, ModelRequest } from "../model/request.ts";
import { findReferences } from "../protocols/references/index.ts";
import type { CallContext, ClientHalf } from "../plugin/protocol.ts";

/** A request about to leave, whose edits can be looked at. */
export interface TestOutgoing extends Outgoing {
  /** As it would leave now; undefined without a body. */
  readonly body: Body | undefined;
  /** Top-level fields that were set or dropped, in order, each once. */
  readonly editedFields: readonly string[];
}

/**
 * An `Outgoing` for tests of `prepare` and of hooks. It keeps the plugin's edits, and the given body stays as it was.
 * Never throws.
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
 * The body that leaves for a translated request: encoded, with what no codec knows beside it, and prepared, as the host
 * does it. A field that the codec says is absent stays so.
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
