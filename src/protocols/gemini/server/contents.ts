// A client's conversation as turns. Calls are answered by their ids, or, where a client's helpers drop these, by the names of
// the functions in the order of the calls.
import type { Block, Turn } from "../../../model/request.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import { isObject, list, only, text } from "../../json.ts";
import { came, digest, malformed } from "../words.ts";
import { blockOf, type Calling } from "./parts.ts";
import { under } from "../../table.ts";
import { ReturnedBlocks } from "./proofs.ts";

/** What a content says beside its role and its parts. */
export interface ContentFrom {
  more: JsonObject;
}

const ROLES: { readonly [role: string]: "user" | "assistant" } = {
  user: "user",
  function: "user",
  model: "assistant",
};

export function instructionsOf(content: unknown): Block[] {
  if (content === undefined || content === null) return [];
  if (!isObject(content)) return malformed("systemInstruction", "must be a content with parts");
  const calls = new Calls();
  return list(content["parts"]).flatMap((part, i) => {
    const at = `systemInstruction.parts[${i}]`;
    return isObject(part) ? blockOf(part, at, calls) : malformed(at, "must be a part");
  });
}

interface Growing {
  role: Turn["role"];
  blocks: ReturnedBlocks;
  more?: JsonObject;
}

/** What follows one another from one side is one turn; what a function answered is a turn of its own. */
export function turnsOf(contents: unknown): Turn[] {
  if (!Array.isArray(contents)) return malformed("contents", "must be a list of contents");
  const turns: Growing[] = [];
  const calls = new Calls();
  for (const [i, content] of (contents as readonly Json[]).entries()) {
    const at = `contents[${i}]`;
    if (!isObject(content)) return malformed(at, "must be a content with parts");
    const role = roleOf(content["role"], at);
    // What says more of itself begins anew.
    const more = only(content, ["role", "parts"]) ? undefined : beside(content);
    let open = more ? undefined : turns.at(-1);
    if (more) turns.push((open = { role, blocks: new ReturnedBlocks(), more }));
    if (role === "assistant" && (more || open?.role !== role)) calls.begin();
    for (const [k, part] of list(content["parts"]).entries()) {
      const place = `${at}.parts[${k}]`;
      if (!isObject(part)) return malformed(place, "must be a part");
      const block = blockOf(part, place, calls);
      const who = block.type === "result" ? "tool" : role;
      if (open?.role !== who || who === "tool")
        turns.push((open = { role: who, blocks: new ReturnedBlocks() }));
      open.blocks.add(block, text(part["thoughtSignature"]));
    }
  }
  return turns.map(({ role, blocks, more }) => {
    const turn: Turn = { role, blocks: blocks.all() };
    return more ? came(turn, { more } satisfies ContentFrom) : turn;
  });
}

function roleOf(said: unknown, at: string): "user" | "assistant" {
  const role = under(ROLES, said ?? "user");
  return role ?? malformed(`${at}.role`, "must be user or model");
}

function beside({ role: _role, parts: _parts, ...more }: JsonObject): JsonObject {
  return more;
}

/** The calls of a conversation, as they are made and answered. */
class Calls implements Calling {
  #made = 0;
  /** Of the last step: the ids of those that are not answered yet, and all of them by their names. */
  #open = new Set<string>();
  #named = new Map<string, { ids: string[]; next: number }>();

  begin(): void {
    this.#open = new Set();
    this.#named = new Map();
  }

  made(id: string | undefined, name: string): string {
    // The same conversation makes the same ids whenever it is sent.
    const own = id ?? `call_${digest(`${this.#made}:${name}`, 24)}`;
    this.#made++;
    this.#open.add(own);
    const same = this.#named.get(name);
    if (same) same.ids.push(own);
    else this.#named.set(name, { ids: [own], next: 0 });
    return own;
  }

  answered(id: string | undefined, name: string): string {
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
