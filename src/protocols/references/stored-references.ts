// What an upstream keeps is reached with its key, and all clients of the gateway share one: what names state of
// another side is carried, where the operator relays it, or refused.
import { fail } from "../../model/error.ts";
import type { Body, Field, Reference, References, Opt, Outgoing } from "../../plugin/index.ts";
import { HOSTED_FIELDS } from "./hosted-tools.ts";
import { findReferences } from "./find-references.ts";
import { STATE_RULES } from "./reference-rules.ts";

type StateReference = Extract<Reference, { type: "state" }>;

/** How a protocol spells its refusals. */
export interface ReferenceErrorStyle {
  /** For words that have no code of their own. */
  readonly code?: string;
  /** field: its errors name the top-level field alone. */
  readonly param?: "path" | "field";
}

/** What may leave of it. */
export interface RelayPermission {
  readonly stateMode: Opt<"reject" | "relay">;
  /** The host has bound what goes on to the key. */
  readonly isBoundToKey: boolean;
}

/** The first thing that names what another side keeps and may not leave. */
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
      `${path} is not served here: it names what is kept elsewhere. ${rule.alternative}`,
    { param: path, code: rule.code ?? code ?? "unsupported_parameter" },
  );
}

/** For a codec's last look, in both modes. What the host has to say of a relay it says itself. */
export function rejectBlockedReferences(
  out: Outgoing,
  state: Opt<"reject" | "relay">,
  spelling?: ReferenceErrorStyle,
) {
  if (state === "relay") return;
  const kept = findBlockedReference(referencesIn(out), { stateMode: state, isBoundToKey: false });
  if (kept) rejectReference(kept, spelling);
}

/** Where the host has not looked: at each field that could hold something. */
export function referencesIn(out: Outgoing): References {
  if (out.references) return out.references();
  const body: Record<string, Opt<Field>> = {};
  for (const field of SCANNED_FIELDS) {
    const value = out.get(field);
    if (value !== undefined) body[field] = value;
  }
  return findReferences(body satisfies Body);
}

/** Top-level fields that tools, conversations and whole requests stand in, and all that the tables name. */
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
