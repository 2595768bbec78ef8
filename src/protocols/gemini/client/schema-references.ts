// Resolves references in a JSON Schema. A few lines of references can expand to more than fits in
// memory, so every expansion is charged to a budget that the whole request shares.
import { setOwnProperty } from "../../../lib/set-own-property.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import { BOUNDS, boundMessage } from "../../../lib/bounds.ts";
import { type ExpansionBudget, failUnsupported } from "./encoding-context.ts";
import { asList, asObject, omitUndefined, asText } from "../../json-values.ts";

export class SchemaExpander {
  readonly root: JsonObject;
  /** Path of the schema in the request, for example "tools.f". */
  readonly #of: string;
  readonly #budget: ExpansionBudget;
  readonly #lose: () => void;
  #parts: number = BOUNDS.schemaParts.max;
  #lost = false;
  /** Deepest level reached since a caller last reset it. */
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

  /** Reports that a constraint was dropped, at most once. */
  lose(): void {
    if (!this.#lost) this.#lose();
    this.#lost = true;
  }

  /** Counts one part of the schema at the given depth. */
  part(depth: number): void {
    this.#count(1);
    this.#within(depth);
  }

  /**
   * Returns the schema that `make` builds for a part. A part with several references is built once
   * and counted each time. The work before a schema is rejected as too large is therefore
   * proportional to its size as sent, not to its expanded size.
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
   * Returns a part with its references and its `allOf` merged into it. Properties and required
   * names accumulate. For other keywords, the last value is used.
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

  /** Merges a part with everything that its references and its `allOf` refer to. */
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

  /**
   * Throws if following references would never end. Each part is visited once, and a part that is
   * reached during its own visit is a cycle.
   */
  #assertAcyclic(): void {
    /** Parts that were reached. true: everything that the part refers to has been visited. */
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

/** Keywords whose content is not part of the surrounding schema. */
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

/**
 * Marks the end of a part's visit on the stack. When it is popped, everything in the part has been
 * visited.
 */
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
  /** Number of levels below the part. */
  levels: number;
}

/** An expanded part and the amounts that it was charged. */
interface ExpandedSchema {
  readonly schema: JsonObject;
  readonly parts: number;
  readonly letters: number;
  /** Number of levels below the part. */
  readonly levels: number;
}

/** Maximum length of a reference, in characters. */
const LONGEST_REFERENCE = 1_024;
/** Cost factor of a character in a reference with escapes. */
const ESCAPED = 8;

function decoded(step: string): string | undefined {
  try {
    return decodeURIComponent(step).replace(/~1/g, "/").replace(/~0/g, "~");
  } catch {
    return undefined;
  }
}
