// Converts a validator's errors to messages: one per mistake, at the key or value that a person
// would identify as the cause.
import { joinWords } from "../../lib/text.ts";
import type { ErrorObject } from "../schema-dialect.ts";
import { LIMIT_SCHEMA, parseLimit } from "../../plugin/store/limit.ts";
import { isTemplate } from "../source/interpolate.ts";
import { problem, quote, type ProblemText } from "../problems.ts";
import { childPointer, isMapping, type Mapping } from "../source/config-tree.ts";

export interface SchemaError {
  readonly words: ProblemText;
  /** Pointer below the validated value. */
  readonly pointer: string;
  readonly side: "key" | "value";
}

/** Returns one sentence, for cases without a file position. */
export const toSentence = ({ words: { message, hint }, pointer }: SchemaError): string =>
  `${pointer === "" ? "" : `${pointer}: `}${message}${hint === undefined ? "" : ` — ${hint}`}`;

/**
 * Returns how a value is written in the file. A value that is secret or came from outside is never
 * repeated.
 */
export interface DescribeValue {
  (pointer: string): { readonly text: string; readonly mayShow: boolean };
}

const TYPE_DESCRIPTIONS: Readonly<Record<string, string>> = {
  string: "text",
  integer: "a whole number",
  number: "a number",
  boolean: "true or false",
  array: "a list",
  object: "keys and values",
  null: "nothing",
};

const FORMAT_DESCRIPTIONS: Readonly<Record<string, string>> = {
  uri: "expected a URL such as https://api.example",
  date: "expected a date such as 2027-03-01",
};

const describeTypes = (types: readonly string[]): string =>
  joinWords(
    types.filter((t) => t !== "null" || types.length === 1).map((t) => TYPE_DESCRIPTIONS[t] ?? t),
  );

export function toSchemaErrors(
  errors: readonly ErrorObject[],
  written: DescribeValue,
): SchemaError[] {
  return selectBranchErrors(errors).map((error) => toSchemaError(error, written));
}

function toSchemaError(error: ErrorObject, written: DescribeValue): SchemaError {
  const { keyword, instancePath: pointer, params } = error;
  const schema = (isMapping(error.parentSchema) ? error.parentSchema : {}) as Mapping;
  const properties = isMapping(schema["properties"]) ? schema["properties"] : {};
  const expects = schema["x-expects"];
  const value = (words: ProblemText): SchemaError => ({ words, pointer, side: "value" });
  switch (keyword) {
    case "additionalProperties": {
      const key = params["additionalProperty"] as string;
      const words = problem.unknownKey(key, Object.keys(properties));
      return { words, pointer: childPointer(pointer, key), side: "key" };
    }
    case "required": {
      const key = params["missingProperty"] as string;
      const described = properties[key];
      const description = isMapping(described) ? described["description"] : undefined;
      const hint = typeof description === "string" ? description : undefined;
      return { words: problem.missingKey(key, hint), pointer, side: "key" };
    }
    case "propertyNames": {
      const key = params["propertyName"] as string;
      const rule = schema["propertyNames"];
      const allowed = isMapping(rule) ? (rule["x-expects"] ?? rule["pattern"]) : undefined;
      const words = problem.badName(key, String(allowed ?? "another"));
      return { words, pointer: childPointer(pointer, key), side: "key" };
    }
    case "enum":
    case "const": {
      const hint = hintForValue([], error.data, written(pointer));
      if (typeof expects === "string") return value(problem.badValue(`expected ${expects}`, hint));
      const { mayShow } = written(pointer);
      const allowed =
        keyword === "enum" ? (params["allowedValues"] as unknown[]) : [params["allowedValue"]];
      return value(problem.notOneOf(mayShow ? plainTextOf(error.data) : undefined, allowed, hint));
    }
    case "type": {
      const types = [params["type"] as string | string[]].flat();
      const hint = hintForValue(types, error.data, written(pointer));
      const words = typeof expects === "string" ? expects : describeTypes(types);
      // A text such as "a duration with its unit" makes the hint unnecessary.
      const isShown = typeof expects === "string" && written(pointer).mayShow;
      const limit = schema["pattern"] === LIMIT_SCHEMA.pattern && suggestLimitText(error.data);
      return value(problem.wrongType(words, limit || (!isShown && hint)));
    }
    case "anyOf":
    case "oneOf": {
      const words = typeof expects === "string" ? expects : describeForms(schema[keyword]);
      const hint = hintForValue([], error.data, written(pointer));
      return value(problem.badValue(`expected ${words}`, hint));
    }
    default: {
      const words = typeof expects === "string" ? `expected ${expects}` : describeRule(error);
      return value(problem.badValue(words, hintForValue([], error.data, written(pointer))));
    }
  }
}

const plainTextOf = (data: unknown): string | undefined =>
  typeof data === "object" ? undefined : String(data);

/** Returns a hint. For a value from a variable or file, the hint contains only its reference. */
function hintForValue(
  types: readonly string[],
  data: unknown,
  { text, mayShow }: ReturnType<DescribeValue>,
): string | false {
  if (!mayShow && isTemplate(text)) return `this value comes from ${text}`;
  if (typeof data === "object") return false;
  if (types.includes("string")) return `put it in quotes${mayShow ? `: ${quote(text)}` : ""}`;
  return types.includes("array") && typeof data === "string" && mayShow && `write [${text}]`;
}

function describeRule({ keyword, params, message }: ErrorObject): string {
  const limit = params["limit"] as number;
  switch (keyword) {
    case "minimum":
      return `expected at least ${limit}`;
    case "maximum":
      return `expected at most ${limit}`;
    case "minLength":
      return limit === 1 ? "must not be empty" : `expected at least ${limit} characters`;
    case "maxLength":
      return `expected at most ${limit} characters`;
    case "minItems":
      return limit === 1 ? "must not be empty" : `expected at least ${limit} entries`;
    case "maxItems":
      return `expected at most ${limit} entries`;
    case "minProperties":
      return limit === 1 ? "must not be empty" : `expected at least ${limit} keys`;
    case "uniqueItems":
      return `entries ${Number(params["j"]) + 1} and ${Number(params["i"]) + 1} are equal`;
    case "pattern":
      return `does not match ${params["pattern"]}`;
    case "format":
      return (
        FORMAT_DESCRIPTIONS[params["format"] as string] ?? `is not a valid ${params["format"]}`
      );
    default:
      return message ?? `violates the rule ${keyword}`;
  }
}

/** Describes alternatives: "text, a list or \"auto\"". */
function describeForms(branches: unknown): string {
  const forms = (Array.isArray(branches) ? branches : []).filter(isMapping).flatMap((branch) => {
    if (typeof branch["x-expects"] === "string") return [branch["x-expects"]];
    if ("const" in branch) return [quote(String(branch["const"]))];
    if (Array.isArray(branch["enum"])) return branch["enum"].map((each) => quote(String(each)));
    if (typeof branch["title"] === "string") return [branch["title"]];
    return branch["type"] === undefined
      ? []
      : [describeTypes([branch["type"] as string | string[]].flat())];
  });
  return forms.length > 0 ? joinWords([...new Set(forms)]) : "another form";
}

/**
 * Selects, for each anyOf and oneOf, the errors of the branch that was probably intended. If no
 * branch matches the form of the value, the error of the anyOf or oneOf itself is kept. Errors of
 * `if` are dropped, because they repeat the errors of its branches.
 */
function selectBranchErrors(errors: readonly ErrorObject[]): ErrorObject[] {
  let rest = errors.filter(
    (e) => e.keyword !== "if" && !(e.propertyName !== undefined && e.keyword !== "propertyNames"),
  );
  // Inner alternatives come first and are resolved first.
  for (const choice of rest.filter((e) => e.keyword === "anyOf" || e.keyword === "oneOf")) {
    if (choice.params["passingSchemas"]) continue;
    const inside = rest.filter(
      (e) =>
        e !== choice &&
        e.schemaPath.startsWith(`${choice.schemaPath}/`) &&
        e.instancePath.startsWith(choice.instancePath),
    );
    const branches = Map.groupBy(
      inside,
      (e) => e.schemaPath.slice(choice.schemaPath.length + 1).split("/")[0]!,
    );
    const fits = [...branches.values()].filter(
      (branch) => !branch.some((e) => isWrongBranch(e, choice.instancePath)),
    );
    const best = fits.sort((a, b) => a.length - b.length)[0];
    const drop = new Set<ErrorObject>(best ? inside.filter((e) => !best.includes(e)) : inside);
    if (best) drop.add(choice);
    rest = rest.filter((e) => !drop.has(e));
  }
  return rest;
}

/**
 * Whether the error shows that the branch was not intended: the value has another type, or the key
 * that distinguishes the forms has another value.
 */
const isWrongBranch = (error: ErrorObject, at: string): boolean =>
  (error.instancePath === at && ["type", "enum", "const"].includes(error.keyword)) ||
  (error.keyword === "const" && error.instancePath.startsWith(at));

/**
 * Returns the text of a limit for a mapping such as { unit: usd, max: 300, per: month }. Returns
 * undefined if its members do not form a limit.
 */
function suggestLimitText(value: unknown): string | undefined {
  if (!isMapping(value)) return undefined;
  const { unit, max, per } = value;
  const text = `${String(unit)}=${String(max)}${unit === "concurrent" ? "" : `/${String(per)}`}`;
  return parseLimit(text) && `write ${text}`;
}
