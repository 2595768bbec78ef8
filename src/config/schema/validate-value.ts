// A value against a schema. What came from outside is text, and becomes a number or a truth value exactly where the
// schema wants one; what YAML has typed stays as it is, so that 0123 and 1.10 are never silently something else.
import { toSchemaErrors, type SchemaError, type DescribeValue } from "./schema-errors.ts";
import {
  type ErrorObject,
  type MarkedPlaces,
  type Schema,
  getValidator,
} from "../schema-dialect.ts";
import { type Mapping, pointerSegments, valueAt } from "../source/config-tree.ts";

export interface ValidationResult extends MarkedPlaces {
  /** Defaults filled in, outside text turned into what it should be. */
  readonly value: unknown;
  readonly errors: readonly SchemaError[];
}

/** `outside`: whether the value at a pointer came from a variable or a file. */
export function validateValue(
  schema: Schema,
  value: unknown,
  outside: (pointer: string) => boolean,
  written: DescribeValue,
): ValidationResult {
  const check = getValidator(schema);
  let given = value;
  for (;;) {
    const { value: filled, errors, ...marked } = check(given);
    const turned = errors.flatMap((error) => {
      if (typeof error.data !== "string" || !outside(error.instancePath)) return [];
      const to = coerceText(error, error.data);
      return to === undefined ? [] : [{ pointer: error.instancePath, to }];
    });
    if (turned.length === 0) {
      const hiding: DescribeValue = (pointer) => {
        const { text, mayShow } = written(pointer);
        return { text, mayShow: mayShow && !marked.secrets.has(pointer) };
      };
      return { value: filled, errors: toSchemaErrors(errors, hiding), ...marked };
    }
    given = turned.reduce(
      (all, { pointer, to }) => setAt(all, pointer, to),
      structuredClone(given),
    );
  }
}

/** The text as a value of the wanted type. */
function coerceText({ keyword, params }: ErrorObject, text: string): unknown {
  if (keyword === "enum" || keyword === "const") {
    const allowed =
      keyword === "enum" ? (params["allowedValues"] as unknown[]) : [params["allowedValue"]];
    return allowed.find((each) => typeof each !== "string" && String(each) === text.trim());
  }
  if (keyword !== "type") return undefined;
  const types = [params["type"] as string | string[]].flat();
  const trimmed = text.trim();
  if (types.includes("boolean") && (trimmed === "true" || trimmed === "false"))
    return trimmed === "true";
  const wantsNumber = types.includes("number") || types.includes("integer");
  if (!wantsNumber || !/^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(trimmed)) return undefined;
  const number = Number(trimmed);
  if (Number.isSafeInteger(number)) return number;
  return types.includes("number") && Number.isFinite(number) && !Number.isInteger(number)
    ? number
    : undefined;
}

function setAt(root: unknown, pointer: string, value: unknown): unknown {
  const path = pointerSegments(pointer);
  const last = path.pop();
  if (last === undefined) return value;
  const container = valueAt(
    root,
    path.length === 0 ? "" : pointer.slice(0, pointer.lastIndexOf("/")),
  );
  (container as Mapping)[last] = value;
  return root;
}
