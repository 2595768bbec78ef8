// A plugin's command as options: one for each property of its input's schema. What options cannot say, --input does.
import type { Schema } from "../config/dialect.ts";
import { fail } from "../model/error.ts";
import type { Json, JsonObject } from "../model/values.ts";
import { type CliInput, type Option, type Options, PLACE } from "./command.ts";

/** Every command's own: a property of such a name is said with --input. */
const TAKEN = new Set([...Object.keys(PLACE), "input", "json", "help"]);

const flat = (property: string) => property.replaceAll("_", "-");
export const flagOf = (property: string): string => `--${flat(property)}`;

const propertiesOf = (schema: Schema): [property: string, Schema][] =>
  Object.entries((schema["properties"] ?? {}) as Record<string, Schema>).filter(
    ([property]) => !TAKEN.has(flat(property)),
  );

const isRequired = (schema: Schema, property: string): boolean =>
  ((schema["required"] ?? []) as string[]).includes(property);

export const optionsOf = (schema: Schema): Options =>
  Object.fromEntries(
    propertiesOf(schema).map(([property, of]): [string, Option] => {
      const value = valueOf(of);
      const about = [
        (of["description"] as string | undefined) ?? "",
        isRequired(schema, property) && "required",
        of["default"] !== undefined && `${JSON.stringify(of["default"])} by default`,
      ].filter(Boolean);
      return [
        flat(property),
        {
          about: about.join("; "),
          ...(value !== undefined && { value }),
          ...(of["type"] === "array" && { many: true }),
        },
      ];
    }),
  );

/** The options that must be given: " --hash <text>". */
export const usageOf = (schema: Schema): string =>
  propertiesOf(schema)
    .filter(([property]) => isRequired(schema, property))
    .map(([property, of]) => ` ${flagOf(property)}${valueOf(of) ? ` <${valueOf(of)}>` : ""}`)
    .join("");

/** What stands for the value; undefined: it is a yes. */
function valueOf(of: Schema): string | undefined {
  if (Array.isArray(of["enum"])) return of["enum"].join("|");
  if (of["type"] === "array") return valueOf((of["items"] ?? {}) as Schema) ?? "true|false";
  const words = { boolean: undefined, integer: "number", number: "number", string: "text" };
  const type = of["type"];
  return typeof type === "string" && type in words ? words[type as keyof typeof words] : "json";
}

/** The options as they were given. Their values are still text; the schema makes numbers of them. */
export async function inputOf(schema: Schema, given: CliInput): Promise<JsonObject> {
  const whole = given.text("input");
  const said = whole === undefined ? {} : parsed(whole === "-" ? await stdin() : whole, "--input");
  if (typeof said !== "object" || said === null || Array.isArray(said))
    return fail("invalid", '--input is a JSON object, as in {"name": "value"}.', { code: "usage" });
  const input: Record<string, Json | undefined> = { ...(said as JsonObject) };
  for (const [property, of] of propertiesOf(schema)) {
    const name = flat(property);
    const text = given.text(name);
    if (given.has(name)) input[property] = true;
    else if (text === undefined) continue;
    else if (of["type"] === "array") input[property] = [...given.texts(name)];
    else input[property] = valueOf(of) === "json" ? parsed(text, flagOf(property)) : text;
  }
  return input;
}

function parsed(text: string, option: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return fail("invalid", `${option} is no JSON: ${why}.`, { code: "usage" });
  }
}

async function stdin(): Promise<string> {
  let text = "";
  for await (const chunk of process.stdin.setEncoding("utf8")) text += chunk as string;
  return text;
}
