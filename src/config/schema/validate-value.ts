// Validates a value against a schema. A value from a variable or file is text. It is converted to a
// number or boolean only if the schema requires one. Values whose type YAML determined are not
// converted, so that 0123 and 1.10 never silently change.
import { toSchemaErrors, type SchemaError, type DescribeValue } from "./schema-errors.ts";
import {
  type ErrorObject,
  type MarkedPlaces,
  type Schema,
  getValidator,
} from "../schema-dialect.ts";
import { type Mapping, pointerSegments, valueAt } from "../source/config-tree.ts";

export interface ValidationResult extends MarkedPlaces {
  /** The value with defaults filled in and text from outside converted. */
  readonly value: unknown;
  readonly errors: readonly SchemaError[];
}

/**
 * @param outside Returns whether the value at a pointer came from a variable or a file.
 */
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

/** Converts the text to the required type. */
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
