// References of a JSON Schema, followed. A few lines of them can spell more than there is memory, so whatever is spelled out
// is paid for from a purse that is the whole request's.
import { put } from "../../../lib/member.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import { BOUNDS, beyond } from "../../../lib/bounds.ts";
import { type Purse, unsayable } from "./encoding.ts";
import { list, object, text } from "../../json.ts";

export class SchemaSpelling {
  readonly root: JsonObject;
  /** Where the schema stands: "tools.f". */
  readonly #of: string;
  readonly #purse: Purse;
  readonly #lose: () => void;
  #parts: number = BOUNDS.schemaParts.most;
  #lost = false;

  constructor(root: JsonObject, of: string, purse: Purse, lose: () => void) {
    this.root = root;
    this.#of = of;
    this.#purse = purse;
    this.#lose = lose;
    purse.left += 2 * JSON.stringify(root).length;
    this.#finite();
  }

  /** Something had to be given up: said once. */
  lose(): void {
    if (!this.#lost) this.#lose();
    this.#lost = true;
  }

  /** One more part of the schema, so many levels down. */
  part(depth: number): void {
    if (this.#parts-- === 0) this.refuse(beyond("schemaParts"));
    this.#within(depth);
  }

  pay(letters: number): void {
    if ((this.#purse.left -= letters) < 0) this.refuse(beyond("schemaSpelled"));
  }

  refuse(what: string): never {
    return unsayable(`The schema of ${this.#of}, with ${what},`, this.#of, "unsupported_schema");
  }

  /**
   * Without references and without `allOf`: what they lead to stands in their place. Members and requirements add up, of
   * single words the last one stands.
   */
  flat(raw: Json, depth: number): JsonObject {
    const node = object(raw) ?? {};
    this.pay(4);
    if (node["$ref"] === undefined && node["allOf"] === undefined) return node;
    const all: MergedSchema = { words: {}, properties: undefined, required: undefined };
    this.#gather(node, all, depth);
    const { words, properties, required } = all;
    return {
      ...words,
      ...(properties && { properties }),
      ...(required && { required: [...required] }),
    };
  }

  #gather(node: JsonObject, into: MergedSchema, depth: number): void {
    this.pay(4);
    this.#within(depth);
    for (const one of list(node["allOf"])) this.#gather(object(one) ?? {}, into, depth + 1);
    const ref = text(node["$ref"]);
    if (ref !== undefined) this.#gather(object(this.#led(ref)) ?? {}, into, depth + 1);
    for (const word in node) {
      const value = node[word];
      if (value === undefined || word === "allOf" || (word === "$ref" && ref !== undefined))
        continue;
      this.pay(1 + word.length);
      if (word === "properties") {
        into.properties ??= {};
        for (const name in object(value)) {
          this.pay(name.length);
          put(into.properties, name, object(value)![name]!);
        }
      } else if (word === "required") {
        into.required ??= new Set();
        for (const name of list(value)) {
          this.pay(1);
          into.required.add(name);
        }
      } else into.words[word] = value;
    }
  }

  #within(depth: number): void {
    if (depth >= BOUNDS.schemaLevels.most) this.refuse(beyond("schemaLevels"));
  }

  #led(ref: string): Json {
    this.pay(ref.length);
    return this.#followed(ref);
  }

  #followed(ref: string): Json {
    let found: Json | undefined = this.root;
    for (const step of ref.replace(/^#\/?/, "").split("/"))
      if (step !== "") {
        const name = decoded(step);
        const at: JsonObject | undefined = object(found);
        found = at && name !== undefined && Object.hasOwn(at, name) ? at[name] : undefined;
      }
    return ref.startsWith("#") && found !== undefined
      ? found
      : this.refuse(`the reference ${ref.slice(0, 100)}`);
  }

  /** Throws where following references would never end. Each part is visited once, and none from inside its own visit. */
  #finite(): void {
    /** true: all that it leads to has been visited. */
    const seen = new Map<object, boolean>();
    const open: (Json | PartEnd)[] = [this.root];
    while (open.length > 0) {
      const next = open.pop()!;
      if (next instanceof PartEnd) {
        seen.set(next.part, true);
        continue;
      }
      if (typeof next !== "object" || next === null) continue;
      if (seen.get(next) === false) this.refuse("itself inside");
      if (seen.has(next)) continue;
      seen.set(next, false);
      open.push(new PartEnd(next));
      const ref = text(object(next)?.["$ref"]);
      if (ref !== undefined) open.push(this.#followed(ref));
      for (const one of within(next)) open.push(one);
    }
  }
}

/** Words whose inside is no part of the schema around them. */
const APART: ReadonlySet<string> = new Set(
  "$defs definitions default example examples enum const".split(" "),
);

function* within(part: object): Generator<Json> {
  for (const word in part) {
    const value = (part as JsonObject)[word]!;
    if (word === "properties") yield* Object.values(object(value) ?? {}) as Json[];
    else if (!APART.has(word)) yield value;
  }
}

/** Stands below what a part holds: when it is come upon, all of that has been visited. */
class PartEnd {
  readonly part: object;
  constructor(part: object) {
    this.part = part;
  }
}

interface MergedSchema {
  words: Record<string, Json>;
  properties: Record<string, Json> | undefined;
  required: Set<Json> | undefined;
}

function decoded(step: string): string | undefined {
  try {
    return decodeURIComponent(step).replace(/~1/g, "/").replace(/~0/g, "~");
  } catch {
    return undefined;
  }
}
