// Lists every key that a JSON Schema of gateway.yaml or of a plugin's options describes.
import type { Schema } from "../../src/config/schema-dialect.ts";
import { DURATION_PATTERN, SIZE_PATTERN } from "../../src/lib/time/units.ts";
import { code, FIRST_VERSION, listed, sentence } from "./markdown.ts";

export interface Setting {
  /** "shutdown.announce", "listen.port", "providers.<name>.use". */
  readonly path: string;
  /** Type with its range or values: "Integer, 1–10". */
  readonly type: string;
  /** Default as code or words. Undefined if there is none. */
  readonly fallback: string | undefined;
  readonly isRequired: boolean;
  /** Whether the key is a section with keys inside. */
  readonly isMap: boolean;
  readonly description: string;
  readonly schema: Schema;
}

type Shape = Schema & {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly additionalProperties?: boolean | Shape;
  readonly required?: readonly string[];
  readonly items?: Shape;
  readonly minimum?: number;
  readonly maximum?: number;
};

/** Returns the alternative forms of a value: of a short and a long form, the long one last. */
function shapes(schema: Shape): readonly Shape[] {
  const { anyOf, then, else: other } = schema as { anyOf?: Shape[]; then?: Shape; else?: Shape };
  if (anyOf) return anyOf.flatMap(shapes);
  if (schema["if"] !== undefined) return [then, other].flatMap((one) => (one ? shapes(one) : []));
  return [schema];
}

const WORDS: Readonly<Record<string, string>> = {
  string: "text",
  object: "map",
  array: "list",
  integer: "integer",
  number: "number",
  boolean: "boolean",
};

function range({ minimum: min, maximum: max }: Shape): string {
  const shown = (value: number) => value.toLocaleString("en-US");
  if (min !== undefined && max !== undefined) return `, ${shown(min)}–${shown(max)}`;
  if (min !== undefined && min > 0) return `, at least ${shown(min)}`;
  return max === undefined ? "" : `, at most ${shown(max)}`;
}

function typeOf(schema: Shape): string {
  const names = shapes(schema).map((one) => {
    if (one.enum)
      return listed(
        one.enum.map((each) => code(String(each))),
        "or",
      );
    if (one["const"] !== undefined) return code(String(one["const"]));
    if (one["pattern"] === DURATION_PATTERN) return "duration";
    if (one["pattern"] === SIZE_PATTERN) return "size";
    if (one["format"] === "date") return "date";
    if (one["format"] === "uri") return "URL";
    if (one.items && [one.type].flat().includes("array")) {
      const items = typeOf(one.items);
      return items === "" ? "list" : `list of ${/`/.test(items) ? items : plural(items)}`;
    }
    if (one.properties || one.additionalProperties) return "map";
    return [one.type ?? []]
      .flat()
      .filter((type) => type !== "null")
      .map((type) => WORDS[type] ?? type)
      .join(" or ")
      .concat(range(one));
  });
  return [...new Set(names)].filter(Boolean).join(", or ") || "text";
}

const plural = (type: string): string =>
  type
    .split(", or ")
    .map((each) => (/^(?:text|map|integer|number)$/.test(each) ? `${each}s` : each))
    .join(" or ");

/** Takes "Default: …" from the end of a description. */
function parseDescription(text: string): { description: string; fallback: string | undefined } {
  const [, description = text, fallback] =
    /^(.*?)[.;]? ?Default: ([^.]+(?:\.\S[^.]*)*)\.?$/s.exec(text) ?? [];
  return { description: description.trim(), fallback };
}

const isCodeLike = (text: string): boolean => /^\S+$/.test(text) && !/^(?:none|all)$/.test(text);

function settingOf(path: string, schema: Shape, isRequired: boolean): Setting {
  const forms = shapes(schema);
  const words = schema.description ?? forms.find((one) => one.description)?.description ?? "";
  const { description, fallback } = parseDescription(
    words.replace(/\.? A change requires a restart$/, ""),
  );
  const own = schema["default"] ?? forms.find((one) => one["default"] !== undefined)?.["default"];
  const isMap = forms.some((one) => one.properties || typeof one.additionalProperties === "object");
  const shown =
    own !== undefined && !(isMap && JSON.stringify(own) === "{}")
      ? code(
          typeof own === "string"
            ? own
            : JSON.stringify(own).replaceAll(/([,:])(?=["\d[{])/g, "$1 "),
        )
      : fallback !== undefined && isCodeLike(fallback)
        ? code(fallback)
        : fallback;
  return { path, type: typeOf(schema), fallback: shown, isRequired, isMap, description, schema };
}

/** Lists the keys below a schema, each before its own keys. */
export function settingsOf(schema: Schema, at = "", skip = /^$/): Setting[] {
  const found = new Map<string, Setting>();
  const add = (all: readonly Setting[]) => {
    for (const each of all) if (!found.has(each.path)) found.set(each.path, each);
  };
  for (const shape of shapes(schema as Shape)) {
    for (const [name, value] of Object.entries(shape.properties ?? {})) {
      const path = at === "" ? name : `${at}.${name}`;
      if (skip.test(path)) continue;
      add([settingOf(path, value, shape.required?.includes(name) ?? false)]);
      add(settingsOf(value, path, skip));
    }
    const { additionalProperties: values, items } = shape;
    if (typeof values === "object") add(settingsOf(values, `${at}.<name>`, skip));
    // A list of the same maps as the short form has no separate entries.
    const isRepeated = shapes(schema as Shape).some(
      (one) => one !== shape && JSON.stringify(one) === JSON.stringify(items),
    );
    if (items && !isRepeated) add(settingsOf(items, `${at}[]`, skip));
  }
  return [...found.values()];
}

/** Divides a description that explains each value of an enum: the words before, and the values. */
function explainValues({ description, schema }: Setting): string {
  const values = ((schema["enum"] ?? []) as readonly unknown[]).map(String);
  const marks = values
    .map((value) => {
      const at = new RegExp(`(?:^|[.;] )(${value.replaceAll(/[.*+?]/g, "\\$&")}): `).exec(
        description,
      );
      return at && { value, from: at.index, to: at.index + at[0].length };
    })
    .filter((mark) => mark !== null)
    .toSorted((a, b) => a.from - b.from);
  if (marks.length < 2) return sentence(description);
  const lines = marks.map(({ value, to }, i) => {
    const text = description.slice(to, marks[i + 1]?.from).trim();
    return `- ${code(value)}: ${sentence(text)}`;
  });
  const head = description.slice(0, marks[0]!.from);
  return [sentence(head), lines.join("\n")].filter(Boolean).join("\n\n");
}

/** Writes the entry of a key: name, type, default, description, restart note, example. */
export function entryOf(
  setting: Setting,
  of: {
    heading?: string;
    name?: string;
    restart?: string | undefined;
    example?: string | undefined;
  } = {},
): string {
  const { path, type, fallback, isRequired, isMap } = setting;
  const facts = [
    sentence(`${type[0]!.toUpperCase()}${type.slice(1)}`),
    isRequired ? "Required." : fallback === undefined ? "" : sentence(`Default: ${fallback}`),
    `Since ${(setting.schema["x-since"] as string | undefined) ?? FIRST_VERSION}.`,
  ];
  return [
    `${of.heading ?? "###"} ${code(of.name ?? path)}`,
    facts.filter(Boolean).join(" "),
    explainValues(setting),
    [of.restart, of.example === undefined || isMap ? undefined : `Example: ${code(of.example)}`]
      .filter(Boolean)
      .join(" "),
  ]
    .filter(Boolean)
    .join("\n\n");
}
