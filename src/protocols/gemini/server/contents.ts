// Decodes a conversation into turns. Results refer to calls by ID. Some client helpers drop the
// IDs, and then results are matched by function name, in the order of the calls.
import type { Block, Turn } from "../../../model/request.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import { isObject, asList, hasOnlyKeys, asText, ownEntry } from "../../json-values.ts";
import { rememberSource, digest, failMalformed } from "../constants.ts";
import { blockOf, type CallTracking } from "./parts.ts";
import { TurnBlocks } from "./pending-proofs.ts";

/** Members of a content other than its role and its parts. */
export interface ContentSource {
  more: JsonObject;
}

const ROLES: { readonly [role: string]: "user" | "assistant" } = {
  user: "user",
  function: "user",
  model: "assistant",
};

export function instructionsOf(content: unknown): Block[] {
  if (content === undefined || content === null) return [];
  if (!isObject(content)) return failMalformed("systemInstruction", "must be a content with parts");
  const calls = new CallTracker();
  return asList(content["parts"]).flatMap((part, i) => {
    const at = `systemInstruction.parts[${i}]`;
    return isObject(part) ? blockOf(part, at, calls) : failMalformed(at, "must be a part");
  });
}

interface PartialTurn {
  role: Turn["role"];
  blocks: TurnBlocks;
  more?: JsonObject;
}

/**
 * Decodes contents into turns. Consecutive contents of one role become one turn. Each function
 * result becomes its own turn.
 */
export function turnsOf(contents: unknown): Turn[] {
  if (!Array.isArray(contents)) return failMalformed("contents", "must be a list of contents");
  const turns: PartialTurn[] = [];
  const calls = new CallTracker();
  for (const [i, content] of (contents as readonly Json[]).entries()) {
    const at = `contents[${i}]`;
    if (!isObject(content)) return failMalformed(at, "must be a content with parts");
    const role = roleOf(content["role"], at);
    // A content with additional members starts a new turn.
    const more = hasOnlyKeys(content, ["role", "parts"]) ? undefined : extraFields(content);
    let open = more ? undefined : turns.at(-1);
    if (more) turns.push((open = { role, blocks: new TurnBlocks(), more }));
    if (role === "assistant" && (more || open?.role !== role)) calls.begin();
    for (const [k, part] of asList(content["parts"]).entries()) {
      const place = `${at}.parts[${k}]`;
      if (!isObject(part)) return failMalformed(place, "must be a part");
      const block = blockOf(part, place, calls);
      const who = block.type === "result" ? "tool" : role;
      if (open?.role !== who || who === "tool")
        turns.push((open = { role: who, blocks: new TurnBlocks() }));
      open.blocks.add(block, asText(part["thoughtSignature"]));
    }
  }
  return turns.map(({ role, blocks, more }) => {
    const turn: Turn = { role, blocks: blocks.all() };
    return more ? rememberSource(turn, { more } satisfies ContentSource) : turn;
  });
}

function roleOf(value: unknown, at: string): "user" | "assistant" {
  const role = ownEntry(ROLES, value ?? "user");
  return role ?? failMalformed(`${at}.role`, "must be user or model");
}

function extraFields({ role: _role, parts: _parts, ...more }: JsonObject): JsonObject {
  return more;
}

/** Tracks the calls of a conversation and their results. */
class CallTracker implements CallTracking {
  #made = 0;
  /**
   * IDs of calls of the last step that have no result yet. `#named` contains all calls of that step
   * by name.
   */
  #open = new Set<string>();
  #named = new Map<string, { ids: string[]; next: number }>();

  begin(): void {
    this.#open = new Set();
    this.#named = new Map();
  }

  recordCall(id: string | undefined, name: string): string {
    // The ID is derived from the position and name, so that the same conversation yields the same
    // IDs every time it is sent.
    const own = id ?? `call_${digest(`${this.#made}:${name}`, 24)}`;
    this.#made++;
    this.#open.add(own);
    const same = this.#named.get(name);
    if (same) same.ids.push(own);
    else this.#named.set(name, { ids: [own], next: 0 });
    return own;
  }

  recordResult(id: string | undefined, name: string): string {
    const own = id ?? this.#next(name) ?? `call_${digest(`none:${name}`, 24)}`;
    this.#open.delete(own);
    return own;
  }

  /** Returns the first call with this name that has no result yet. */
  #next(name: string): string | undefined {
    const same = this.#named.get(name);
    while (same && same.next < same.ids.length) {
      const id = same.ids[same.next++]!;
      if (this.#open.has(id)) return id;
    }
    return undefined;
  }
}
