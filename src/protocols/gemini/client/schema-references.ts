// References of a JSON Schema, followed. A few lines of them can spell more than there is memory, so whatever is spelled out
// is paid for from a purse that is the whole request's.
import { setOwnProperty } from "../../../lib/set-own-property.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import { BOUNDS, boundMessage } from "../../../lib/bounds.ts";
import { type ExpansionBudget, failUnsupported } from "./encoding-context.ts";
import { asList, asObject, omitUndefined, asText } from "../../json-values.ts";

export class SchemaExpander {
  readonly root: JsonObject;
  /** Where the schema stands: "tools.f". */
  readonly #of: string;
  readonly #budget: ExpansionBudget;
  readonly #lose: () => void;
  #parts: number = BOUNDS.schemaParts.max;
  #lost = false;
  /** The deepest level reached since a caller last looked. */
  #deepest = 0;
  readonly #made = new Map<object, ExpandedSchema>();
  readonly #merged = new Map<object, MergedSchema>();

  constructor(root: JsonObject, of: string, purse: ExpansionBudget, lose: () => void) {
    this.root = root;
    this.#of = of;
    this.#budget = purse;
    this.#lose = lose;
    purse.remaining += 2 * JSON.stringify(root).length;
    this.#assertAcyclic();
  }

  /** Something had to be given up: said once. */
  lose(): void {
    if (!this.#lost) this.#lose();
    this.#lost = true;
  }

  /** One more part of the schema, so many levels down. */
  part(depth: number): void {
    this.#count(1);
    this.#within(depth);
  }

  /**
   * The schema that `make` returns for a part. A part that several references lead to is made once and counted each time:
   * a schema that is too large is refused after work in proportion to what the client sent, not to what it spells.
   */
  once(raw: Json, depth: number, make: () => JsonObject): JsonObject {
    const part = asObject(raw);
    const made = part && this.#made.get(part);
    if (made) {
      this.#within(depth + made.levels);
      this.#count(made.parts);
      this.charge(made.letters);
      return made.schema;
    }
    const [parts, letters, deepest] = [this.#parts, this.#budget.remaining, this.#deepest];
    this.#deepest = depth;
    const schema = make();
    if (part)
      this.#made.set(part, {
        schema,
        parts: parts - this.#parts,
        letters: letters - this.#budget.remaining,
        levels: this.#deepest - depth,
      });
    this.#deepest = Math.max(deepest, this.#deepest);
    return schema;
  }

  #count(parts: number): void {
    if ((this.#parts -= parts) < 0) this.refuse(boundMessage("schemaParts"));
  }

  charge(letters: number): void {
    if ((this.#budget.remaining -= letters) < 0) this.refuse(boundMessage("schemaExpansion"));
  }

  refuse(what: string): never {
    return failUnsupported(
      `The schema of ${this.#of}, with ${what},`,
      this.#of,
      "unsupported_schema",
    );
  }

  /**
   * Without references and without `allOf`: what they lead to stands in their place. Members and requirements add up, of
   * single words the last one stands.
   */
  expand(raw: Json, depth: number): JsonObject {
    const node = asObject(raw) ?? {};
    this.charge(4);
    if (node["$ref"] === undefined && node["allOf"] === undefined) return node;
    const { words, properties, required } = this.#merge(node, depth);
    return {
      ...words,
      ...(properties && { properties }),
      ...(required && { required: [...required] }),
    };
  }

  /** A part with all that its references and its `allOf` lead to. */
  #merge(node: JsonObject, depth: number): MergedSchema {
    const known = this.#merged.get(node);
    if (known) {
      this.#within(depth + known.levels);
      return known;
    }
    this.charge(4);
    this.#within(depth);
    const into: MergedSchema = {
      words: {},
      properties: undefined,
      required: undefined,
      levels: 0,
    };
    const add = (one: Json) => {
      const from = this.#merge(asObject(one) ?? {}, depth + 1);
      this.#add(from, into);
      into.levels = Math.max(into.levels, from.levels + 1);
    };
    for (const one of asList(node["allOf"])) add(one);
    const ref = asText(node["$ref"]);
    if (ref !== undefined) add(this.#resolve(ref));
    const words: Record<string, Json> = {};
    for (const word in node) {
      const value = node[word];
      if (value === undefined || word === "allOf" || (word === "$ref" && ref !== undefined))
        continue;
      if (word !== "properties" && word !== "required") words[word] = value;
    }
    const required = node["required"] === undefined ? undefined : new Set(asList(node["required"]));
    const properties =
      node["properties"] === undefined
        ? undefined
        : omitUndefined(asObject(node["properties"]) ?? {});
    this.#add({ words, properties: properties as MergedSchema["properties"], required }, into);
    this.#merged.set(node, into);
    return into;
  }

  #add(from: Omit<MergedSchema, "levels">, into: MergedSchema): void {
    for (const word in from.words) {
      this.charge(1 + word.length);
      into.words[word] = from.words[word]!;
    }
    if (from.properties) into.properties ??= {};
    for (const name in from.properties) {
      this.charge(name.length);
      setOwnProperty(into.properties!, name, from.properties[name]!);
    }
    if (from.required) into.required ??= new Set();
    for (const name of from.required ?? []) {
      this.charge(1);
      into.required!.add(name);
    }
  }

  #within(depth: number): void {
    if (depth >= BOUNDS.schemaLevels.max) this.refuse(boundMessage("schemaLevels"));
    if (depth > this.#deepest) this.#deepest = depth;
  }

  #resolve(ref: string): Json {
    this.charge(ref.length);
    return this.#lookUp(ref);
  }

  #lookUp(ref: string): Json {
    if (ref.length > LONGEST_REFERENCE) this.refuse(`the reference ${ref.slice(0, 100)}`);
    if (ref.includes("%") || ref.includes("~")) this.charge(ESCAPED * ref.length);
    let found: Json | undefined = this.root;
    for (const step of ref.replace(/^#\/?/, "").split("/"))
      if (step !== "") {
        const name = decoded(step);
        const at: JsonObject | undefined = asObject(found);
        found = at && name !== undefined && Object.hasOwn(at, name) ? at[name] : undefined;
      }
    return ref.startsWith("#") && found !== undefined
      ? found
      : this.refuse(`the reference ${ref.slice(0, 100)}`);
  }

  /** Throws where following references would never end. Each part is visited once, and none from inside its own visit. */
  #assertAcyclic(): void {
    /** true: all that it leads to has been visited. */
    const seen = new Map<object, boolean>();
    const open: (Json | VisitEnd)[] = [this.root];
    while (open.length > 0) {
      const next = open.pop()!;
      if (next instanceof VisitEnd) {
        seen.set(next.part, true);
        continue;
      }
      if (typeof next !== "object" || next === null) continue;
      if (seen.get(next) === false) this.refuse("itself inside");
      if (seen.has(next)) continue;
      seen.set(next, false);
      open.push(new VisitEnd(next));
      const ref = asText(asObject(next)?.["$ref"]);
      if (ref !== undefined) open.push(this.#lookUp(ref));
      for (const one of within(next)) open.push(one);
    }
  }
}

/** Words whose inside is no part of the schema around them. */
const NON_SCHEMA_KEYWORDS: ReadonlySet<string> = new Set(
  "$defs definitions default example examples enum const".split(" "),
);

function* within(part: object): Generator<Json> {
  for (const word in part) {
    const value = (part as JsonObject)[word]!;
    if (word === "properties") yield* Object.values(asObject(value) ?? {}) as Json[];
    else if (!NON_SCHEMA_KEYWORDS.has(word)) yield value;
  }
}

/** Stands below what a part holds: when it is come upon, all of that has been visited. */
class VisitEnd {
  readonly part: object;
  constructor(part: object) {
    this.part = part;
  }
}

interface MergedSchema {
  words: Record<string, Json>;
  properties: Record<string, Json> | undefined;
  required: Set<Json> | undefined;
  /** Below it. */
  levels: number;
}

/** A part as it was made, and what it was counted as. */
interface ExpandedSchema {
  readonly schema: JsonObject;
  readonly parts: number;
  readonly letters: number;
  /** Below it. */
  readonly levels: number;
}

/** Characters of a reference. */
const LONGEST_REFERENCE = 1_024;
/** A character of a reference with escapes is so many times the work of another. */
const ESCAPED = 8;

function decoded(step: string): string | undefined {
  try {
    return decodeURIComponent(step).replace(/~1/g, "/").replace(/~0/g, "~");
  } catch {
    return undefined;
  }
}
