// Generates the reference of gateway.yaml from the schema for editors: every key with its type and
// description.
export interface Setting {
  /** "shutdown.announce", "listen[].port", "providers.<name>.use". */
  readonly path: string;
  readonly takes: string;
  readonly words: string;
}

interface Schema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly if?: Schema;
  readonly then?: Schema;
  readonly else?: Schema;
  readonly $ref?: string;
  readonly pattern?: string;
}

/** The whole schema. */
export interface SettingsSchema {
  readonly properties: Readonly<Record<string, Schema>>;
  readonly definitions: Readonly<Record<string, Schema>>;
}

export interface Plugin {
  readonly kind: string;
  readonly name: string;
  readonly words: string;
  readonly settings: readonly Setting[];
}

const REFERENCE = "#/definitions/reference";

/**
 * Returns the forms of a value, except for references to variables and files, which every text may
 * contain.
 */
function shapes(schema: Schema): readonly Schema[] {
  if (schema.anyOf) return schema.anyOf.filter(({ $ref }) => $ref !== REFERENCE).flatMap(shapes);
  if (schema.if) return [schema.then, schema.else].flatMap((one) => (one ? shapes(one) : []));
  return schema.$ref === REFERENCE ? [] : [schema];
}

function takes(schema: Schema): string {
  const words = shapes(schema).map((one) => {
    if (one.enum) return one.enum.map((each) => `\`${String(each)}\``).join(", ");
    if (one.const !== undefined) return `\`${String(one.const)}\``;
    if (one.pattern?.includes("ms|s|m|h|d")) return "duration";
    if (one.properties || one.type === "object") return "map";
    if (one.items) return `list of ${takes(one.items) || "values"}`;
    return [one.type ?? "text"]
      .flat()
      .filter((type) => type !== "null")
      .join(" or ")
      .replaceAll("string", "text")
      .replaceAll("array", "list");
  });
  return [...new Set(words)].filter(Boolean).join(", or ");
}

const DEEPEST = 6;

export function settings(schema: Schema, at = "", depth = 0): Setting[] {
  if (depth > DEEPEST) return [];
  const found = new Map<string, Setting>();
  for (const shape of shapes(schema)) {
    for (const [name, value] of Object.entries(shape.properties ?? {})) {
      const path = at === "" ? name : `${at}.${name}`;
      const told =
        value.default === undefined ? "" : ` Default: \`${JSON.stringify(value.default)}\`.`;
      const words =
        value.description ??
        shapes(value).find(({ description }) => description)?.description ??
        "";
      if (!found.has(path))
        found.set(path, { path, takes: takes(value), words: `${words}${told}`.trim() });
      for (const each of settings(value, path, depth + 1))
        found.set(each.path, found.get(each.path) ?? each);
    }
    const { additionalProperties: more, items } = shape;
    if (typeof more === "object")
      for (const each of settings(more, `${at}.<name>`, depth + 1)) found.set(each.path, each);
    if (items) for (const each of settings(items, `${at}[]`, depth + 1)) found.set(each.path, each);
  }
  return [...found.values()];
}

/** Replaces `$ref` by the definitions, except for references to variables and files. */
export function resolved(schema: Schema, definitions: Readonly<Record<string, Schema>>): Schema {
  const inner = (one: Schema): Schema => {
    const name = one.$ref?.slice("#/definitions/".length);
    const there = name === undefined || one.$ref === REFERENCE ? undefined : definitions[name];
    if (there) return inner(there);
    return Object.fromEntries(
      Object.entries(one).map(([key, value]: [string, unknown]) => [
        key,
        Array.isArray(value)
          ? value.map((each: unknown) => (isSchema(each) ? inner(each) : each))
          : isSchema(value)
            ? key === "properties"
              ? Object.fromEntries(
                  Object.entries(value).map(([at, each]) => [at, inner(each as Schema)]),
                )
              : inner(value)
            : value,
      ]),
    );
  };
  return inner(schema);
}

const isSchema = (value: unknown): value is Schema =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns the plugins that ship with Tollgate, with their options. */
export function plugins(schema: SettingsSchema): readonly Plugin[] {
  return Object.entries(schema.definitions).flatMap(([name, options]) => {
    const [, kind, plugin] = /^(\w+)\.(.+)\.options$/.exec(name) ?? [];
    if (!kind || !plugin) return [];
    const words = schema.definitions[`${kind}.${plugin}`]?.description ?? options.description ?? "";
    return [{ kind, name: plugin, words, settings: settings(options) }];
  });
}
