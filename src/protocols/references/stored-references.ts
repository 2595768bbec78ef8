// Rejects references to state that a provider stores. All clients of the gateway share the
// provider's key, so one client could reach another client's state. A reference is forwarded only
// if the operator relays it.
import { fail } from "../../model/error.ts";
import type { Body, Field, Reference, References, Opt, Outgoing } from "../../plugin/index.ts";
import { HOSTED_FIELDS } from "./hosted-tools.ts";
import { findReferences } from "./find-references.ts";
import { STATE_RULES } from "./reference-rules.ts";

type StateReference = Extract<Reference, { type: "state" }>;

/** How a protocol formats its reference errors. */
export interface ReferenceErrorStyle {
  /** Error code for references that have no code of their own. */
  readonly code?: string;
  /** `field`: errors name only the top-level field. Default: the full path. */
  readonly param?: "path" | "field";
}

/** Which references may be sent. */
export interface RelayPermission {
  readonly stateMode: Opt<"reject" | "relay">;
  /** Whether the host has bound the continued response to the client's key. */
  readonly isBoundToKey: boolean;
}

/** Returns the first reference to stored state that may not be sent. */
export function findBlockedReference(
  named: References,
  { stateMode, isBoundToKey }: RelayPermission,
): StateReference | undefined {
  for (const one of named) {
    if (one.type !== "state" || one.effect !== "refers") continue;
    const { relayPolicy } = one.rule;
    if (
      stateMode === "relay" &&
      (relayPolicy === "passthrough" || (relayPolicy === "bound" && isBoundToKey))
    )
      continue;
    return one;
  }
  return undefined;
}

export function rejectReference(
  kept: StateReference,
  { code, param }: ReferenceErrorStyle = {},
): never {
  const { rule, value, field } = kept;
  const path = param === "field" ? field : kept.path;
  return fail(
    "unsupported",
    rule.message?.(value) ??
      `${path} is not supported: it refers to an object that is stored elsewhere. ${rule.alternative}`,
    { param: path, code: rule.code ?? code ?? "unsupported_parameter" },
  );
}

/**
 * Rejects references that may not be sent. Codecs call it last, in both passthrough and translated
 * mode. In relay mode the host makes this check.
 */
export function rejectBlockedReferences(
  out: Outgoing,
  state: Opt<"reject" | "relay">,
  spelling?: ReferenceErrorStyle,
) {
  if (state === "relay") return;
  const kept = findBlockedReference(referencesIn(out), { stateMode: state, isBoundToKey: false });
  if (kept) rejectReference(kept, spelling);
}

/**
 * Returns the references of an outgoing request. If the host has not searched it, only the fields
 * that can contain a reference are searched.
 */
export function referencesIn(out: Outgoing): References {
  if (out.references) return out.references();
  const body: Record<string, Opt<Field>> = {};
  for (const field of SCANNED_FIELDS) {
    const value = out.get(field);
    if (value !== undefined) body[field] = value;
  }
  return findReferences(body satisfies Body);
}

/**
 * Top-level fields that can contain tools, conversations, or whole requests, and all fields in the
 * tables.
 */
const SCANNED_FIELDS: readonly string[] = [
  ...Object.keys(STATE_RULES),
  ...HOSTED_FIELDS,
  "prompt_cache_options",
  "messages",
  "system",
  "input",
  "contents",
  "systemInstruction",
  "generateContentRequest",
  "tools",
];
