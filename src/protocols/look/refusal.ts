// What an upstream keeps is reached with its key, and all clients of the gateway share one: what names state of
// another side is carried, where the operator relays it, or refused.
import { fail } from "../../model/error.ts";
import type { Body, Field, Finding, Named, Opt, Outgoing } from "../../plugin/index.ts";
import { HOSTED_FIELDS } from "./hosted.ts";
import { look } from "./named.ts";
import { STATE } from "./words.ts";

type StateFinding = Extract<Finding, { kind: "state" }>;

/** How a protocol spells its refusals. */
export interface RefusalStyle {
  /** For words that have no code of their own. */
  readonly code?: string;
  /** field: its errors name the top-level field alone. */
  readonly param?: "path" | "field";
}

/** What may leave of it. */
export interface RelayPermission {
  readonly state: Opt<"refuse" | "relay">;
  /** The host has bound what goes on to the key. */
  readonly bound: boolean;
}

/** The first thing that names what another side keeps and may not leave. */
export function keptIn(named: Named, { state, bound }: RelayPermission): StateFinding | undefined {
  for (const one of named) {
    if (one.kind !== "state" || one.does !== "names") continue;
    const { relay } = one.word;
    if (state === "relay" && (relay === "carried" || (relay === "bound" && bound))) continue;
    return one;
  }
  return undefined;
}

export function refuse(kept: StateFinding, { code, param }: RefusalStyle = {}): never {
  const { word, value, field } = kept;
  const path = param === "field" ? field : kept.path;
  return fail(
    "unsupported",
    word.says?.(value) ??
      `${path} is not served here: it names what is kept elsewhere. ${word.instead}`,
    { param: path, code: word.code ?? code ?? "unsupported_parameter" },
  );
}

/** For a codec's last look, on both lanes. What the host has to say of a relay it says itself. */
export function refuseKept(out: Outgoing, state: Opt<"refuse" | "relay">, spelling?: RefusalStyle) {
  if (state === "relay") return;
  const kept = keptIn(namedIn(out), { state, bound: false });
  if (kept) refuse(kept, spelling);
}

/** Where the host has not looked: at each field that could hold something. */
export function namedIn(out: Outgoing): Named {
  if (out.named) return out.named();
  const body: Record<string, Opt<Field>> = {};
  for (const field of FIELDS) {
    const value = out.get(field);
    if (value !== undefined) body[field] = value;
  }
  return look(body satisfies Body);
}

/** Top-level fields that tools, conversations and whole requests stand in, and all that the tables name. */
const FIELDS: readonly string[] = [
  ...Object.keys(STATE),
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
