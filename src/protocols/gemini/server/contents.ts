// A client's conversation as turns. Calls are answered by their ids, or, where a client's helpers drop these, by the names of
// the functions in the order of the calls.
import type { Block, Turn } from "../../../model/request.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import { isObject, asList, hasOnlyKeys, asText } from "../../json-values.ts";
import { rememberSource, digest, failMalformed } from "../constants.ts";
import { blockOf, type CallTracking } from "./parts.ts";
import { ownEntry } from "../../own-entry.ts";
import { TurnBlocks } from "./pending-proofs.ts";

/** What a content says beside its role and its parts. */
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

/** What follows one another from one side is one turn; what a function answered is a turn of its own. */
export function turnsOf(contents: unknown): Turn[] {
  if (!Array.isArray(contents)) return failMalformed("contents", "must be a list of contents");
  const turns: PartialTurn[] = [];
  const calls = new CallTracker();
  for (const [i, content] of (contents as readonly Json[]).entries()) {
    const at = `contents[${i}]`;
    if (!isObject(content)) return failMalformed(at, "must be a content with parts");
    const role = roleOf(content["role"], at);
    // What says more of itself begins anew.
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

/** The calls of a conversation, as they are made and answered. */
class CallTracker implements CallTracking {
  #made = 0;
  /** Of the last step: the ids of those that are not answered yet, and all of them by their names. */
  #open = new Set<string>();
  #named = new Map<string, { ids: string[]; next: number }>();

  begin(): void {
    this.#open = new Set();
    this.#named = new Map();
  }

  recordCall(id: string | undefined, name: string): string {
    // The same conversation makes the same ids whenever it is sent.
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

  /** The first of this name that is not answered. */
  #next(name: string): string | undefined {
    const same = this.#named.get(name);
    while (same && same.next < same.ids.length) {
      const id = same.ids[same.next++]!;
      if (this.#open.has(id)) return id;
    }
    return undefined;
  }
}
