// Builds the options of a plugin's command: one for each property of its input schema. `--input`
// covers values that options cannot express.
import type { Schema } from "../../config/schema-dialect.ts";
import { fail } from "../../model/error.ts";
import type { Json, JsonObject } from "../../model/values.ts";
import { type CliInput, type Option, type Options, GATEWAY_OPTIONS } from "./command.ts";

/** Names of options that every command has. Properties with these names are set with --input. */
const RESERVED_OPTIONS = new Set([...Object.keys(GATEWAY_OPTIONS), "input", "json", "help"]);

const toKebabCase = (property: string) => property.replaceAll("_", "-");
export const optionFlag = (property: string): string => `--${toKebabCase(property)}`;

const propertiesOf = (schema: Schema): [property: string, Schema][] =>
  Object.entries((schema["properties"] ?? {}) as Record<string, Schema>).filter(
    ([property]) => !RESERVED_OPTIONS.has(toKebabCase(property)),
  );

const isRequired = (schema: Schema, property: string): boolean =>
  ((schema["required"] ?? []) as string[]).includes(property);

export const schemaOptions = (schema: Schema): Options =>
  Object.fromEntries(
    propertiesOf(schema).map(([property, of]): [string, Option] => {
      const value = placeholderOf(of);
      const about = [
        (of["description"] as string | undefined) ?? "",
        isRequired(schema, property) && "(required)",
        of["default"] !== undefined && `(default: ${JSON.stringify(of["default"])})`,
      ].filter(Boolean);
      return [
        toKebabCase(property),
        {
          description: about.join(" "),
          ...(value !== undefined && { placeholder: value }),
          ...(of["type"] === "array" && { isRepeatable: true }),
        },
      ];
    }),
  );

/** Returns the required options for the usage line: " --hash <text>". */
export const requiredUsage = (schema: Schema): string =>
  propertiesOf(schema)
    .filter(([property]) => isRequired(schema, property))
    .map(
      ([property, of]) =>
        ` ${optionFlag(property)}${placeholderOf(of) ? ` <${placeholderOf(of)}>` : ""}`,
    )
    .join("");

/** Returns the placeholder of the option's value, or undefined for a boolean. */
function placeholderOf(of: Schema): string | undefined {
  if (Array.isArray(of["enum"])) return of["enum"].join("|");
  if (of["type"] === "array") return placeholderOf((of["items"] ?? {}) as Schema) ?? "true|false";
  const words = { boolean: undefined, integer: "number", number: "number", string: "text" };
  const type = of["type"];
  return typeof type === "string" && type in words ? words[type as keyof typeof words] : "json";
}

/** Reads the given options. Values stay text, and the schema converts numbers. */
export async function readInput(schema: Schema, given: CliInput): Promise<JsonObject> {
  const whole = given.getText("input");
  const said =
    whole === undefined
      ? {}
      : parseJsonOption(whole === "-" ? await readStdin() : whole, "--input");
  if (typeof said !== "object" || said === null || Array.isArray(said))
    return fail("invalid", '--input must be a JSON object, such as {"name": "value"}.', {
      code: "usage",
    });
  const input: Record<string, Json | undefined> = { ...(said as JsonObject) };
  for (const [property, of] of propertiesOf(schema)) {
    const name = toKebabCase(property);
    const text = given.getText(name);
    if (given.has(name)) input[property] = true;
    else if (text === undefined) continue;
    else if (of["type"] === "array") input[property] = [...given.getTexts(name)];
    else
      input[property] =
        placeholderOf(of) === "json" ? parseJsonOption(text, optionFlag(property)) : text;
  }
  return input;
}

function parseJsonOption(text: string, option: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return fail("invalid", `Invalid JSON in ${option}: ${why}.`, { code: "usage" });
  }
}

async function readStdin(): Promise<string> {
  let text = "";
  for await (const chunk of process.stdin.setEncoding("utf8")) text += chunk as string;
  return text;
}
