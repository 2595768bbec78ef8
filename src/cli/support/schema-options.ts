// Builds the options of a command from its input schema, and reads the input from the options.
// Commands of the gateway refine their options with `x-cli`. Commands of plugins also have
// `--input`, for values that options cannot express.
import { resolve } from "node:path";
import { parseTimeZone } from "../../admin/commands/ledger-names.ts";
import type { CliField, CliForm } from "../../admin/schema/command-spec.ts";
import type { Schema } from "../../config/schema-dialect.ts";
import { fail } from "../../model/error.ts";
import type { Json, JsonObject } from "../../model/values.ts";
import { checkLimit } from "../format/key-output.ts";
import { parseDurationText, parseExpiry, parseTime } from "../format/option-times.ts";
import { type CliInput, type Option, type Options, GATEWAY_OPTIONS } from "./command.ts";

/** Names of options that every command has. Properties with these names are set with --input. */
const RESERVED_OPTIONS = new Set([...Object.keys(GATEWAY_OPTIONS), "input", "json", "help"]);

/** Value of an option that clears a setting. */
const CLEAR_VALUE = "none";

interface Member {
  readonly property: string;
  readonly flag: string;
  readonly schema: Schema;
  readonly field: CliField;
}

/** @param omit Members that are not options. */
const membersOf = (schema: Schema, omit: readonly string[] = []): Member[] =>
  Object.entries((schema["properties"] ?? {}) as Record<string, Schema>)
    .map(([property, of]) => {
      const field = (of["x-cli"] ?? {}) as CliField;
      return { property, flag: field.flag ?? property.replaceAll("_", "-"), schema: of, field };
    })
    .filter(
      ({ property, flag, field }) =>
        !RESERVED_OPTIONS.has(flag) && !field.hidden && !omit.includes(property),
    );

/** Returns the option that sets a member of the input: "--max-age". */
export const optionFlag = (property: string): string => `--${property.replaceAll("_", "-")}`;

const isRequired = (schema: Schema, property: string): boolean =>
  ((schema["required"] ?? []) as string[]).includes(property);

const takesNull = ({ type, enum: values }: Schema): boolean =>
  [type, values].some((each) => Array.isArray(each) && (each as unknown[]).some(isNullName));
const isNullName = (each: unknown): boolean => each === "null" || each === null;

const LIST_FORMS: ReadonlySet<CliForm> = new Set(["names", "limits", "defaults", "labels"]);
const isList = ({ schema, field }: Member): boolean =>
  typeIn(schema) === "array" || (field.form !== undefined && LIST_FORMS.has(field.form));

/** Returns the type of a schema, without "null". */
const typeIn = ({ type }: Schema): unknown =>
  Array.isArray(type) ? type.find((each) => each !== "null") : type;

export const schemaOptions = (schema: Schema, omit?: readonly string[]): Options =>
  Object.fromEntries(
    membersOf(schema, omit).map((member): [string, Option] => {
      const { property, flag, field, schema: of } = member;
      const value = placeholderOf(member);
      const about = [
        field.description ?? describeMember(of, value === undefined),
        isRequired(schema, property) && "(required)",
        of["default"] !== undefined && `(default: ${JSON.stringify(of["default"])})`,
      ].filter(Boolean);
      return [
        flag,
        {
          description: about.join(" "),
          ...(field.short !== undefined && { short: field.short }),
          ...(value !== undefined && { placeholder: value }),
          ...(isList(member) && { isRepeatable: true }),
        },
      ];
    }),
  );

/** Returns the description, with its default in the form of the command line. */
const describeMember = ({ description = "" }: Schema, isFlag: boolean): string =>
  String(description).replace(/\. Default: (.+)$/, isFlag ? "" : " (default: $1)");

/** Returns the required options for the usage line: " --hash <text>". */
export const requiredUsage = (schema: Schema, omit?: readonly string[]): string =>
  membersOf(schema, omit)
    .filter(({ property }) => isRequired(schema, property))
    .map((member) => ` --${member.flag}${withPlaceholder(placeholderOf(member))}`)
    .join("");

const withPlaceholder = (value: string | undefined) => (value === undefined ? "" : ` <${value}>`);

/** Returns the placeholder of the option's value, or undefined for a flag. */
const placeholderOf = ({ schema, field }: Member): string | undefined =>
  field.form === "negated" ? undefined : (field.value ?? typePlaceholder(schema));

function typePlaceholder(of: Schema): string | undefined {
  if (Array.isArray(of["enum"])) return of["enum"].filter((each) => each !== null).join("|");
  const type = typeIn(of);
  if (type === "array") return typePlaceholder((of["items"] ?? {}) as Schema) ?? "true|false";
  const words = { boolean: undefined, integer: "number", number: "number", string: "text" };
  return typeof type === "string" && type in words ? words[type as keyof typeof words] : "json";
}

/** Reads the positional arguments of a gateway command. */
export const readArguments = (
  schema: Schema,
  args: readonly string[],
  given: CliInput,
): JsonObject =>
  Object.fromEntries(
    membersOf(schema).flatMap((member) => {
      const text = given.positionals[args.indexOf(member.property)];
      return text === undefined ? [] : [[member.property, toValue(member, [text], given)] as const];
    }),
  );

/** Reads the given options of a gateway command. */
export function readOptions(schema: Schema, given: CliInput, omit?: readonly string[]): JsonObject {
  const input: Record<string, Json> = {};
  for (const member of membersOf(schema, omit)) {
    const { property, flag, field, schema: of } = member;
    const texts = given.getTexts(flag).filter(Boolean);
    if (given.has(flag)) input[property] = field.form !== "negated";
    else if (texts.length === 0) continue;
    else if (takesNull(of) && texts.length === 1 && texts[0] === CLEAR_VALUE)
      input[property] = null;
    else input[property] = isList(member) ? toList(member, texts) : toValue(member, texts, given);
  }
  return input;
}

function toList({ field, flag }: Member, texts: readonly string[]): Json {
  switch (field.form) {
    case "names":
      return texts.flatMap((text) => text.split(",")).filter(Boolean);
    case "limits":
      return texts.map((text) => checkLimit(text, flag));
    case "defaults":
      return { limits: texts.map((text) => checkLimit(text, flag)) };
    case "labels":
      return Object.fromEntries(texts.map((text) => parseLabel(text, flag)));
    default:
      return [...texts];
  }
}

/** Converts the last of several values. A text that is not of the type is rejected by the command. */
function toValue({ field, flag, schema }: Member, texts: readonly string[], given: CliInput): Json {
  const text = texts.at(-1)!;
  switch (field.form) {
    case "time":
      return parseTime(text, flag, parseTimeZone(given.getText("tz")));
    case "expiry":
      return parseExpiry(text, flag);
    case "duration":
      return parseDurationText(text, flag);
    case "path":
      return resolve(text);
    default:
      return typeIn(schema) === "integer" && /^\d{1,15}$/.test(text) ? Number(text) : text;
  }
}

function parseLabel(text: string, flag: string): [string, string] {
  const [, name, value] = /^([^=]+)=(.+)$/.exec(text) ?? [];
  return name === undefined
    ? fail("invalid", `Invalid --${flag} "${text}". It must be name=value.`, { code: "usage" })
    : [name, value!];
}

/**
 * Reads the given options of a plugin's command. Values stay text, and the schema converts numbers.
 */
export async function readInput(schema: Schema, given: CliInput): Promise<JsonObject> {
  const whole = given.getText("input");
  const parsed =
    whole === undefined
      ? {}
      : parseJsonOption(whole === "-" ? await readStdin() : whole, "--input");
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed))
    return fail("invalid", '--input must be a JSON object, such as {"name": "value"}.', {
      code: "usage",
    });
  const input: Record<string, Json | undefined> = { ...(parsed as JsonObject) };
  for (const member of membersOf(schema)) {
    const { property, flag } = member;
    const text = given.getText(flag);
    if (given.has(flag)) input[property] = true;
    else if (text === undefined) continue;
    else if (isList(member)) input[property] = [...given.getTexts(flag)];
    else
      input[property] =
        placeholderOf(member) === "json" ? parseJsonOption(text, `--${flag}`) : text;
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
