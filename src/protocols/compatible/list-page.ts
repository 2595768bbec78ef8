// A provider's answer to the question what it has. Upstream may send anything: what is not a list of models is said in words,
// with what was expected and what came, and one row of another shape is left out.
import { isObject, asObject } from "../json-values.ts";
import { fail, type JsonObject, type ProviderClient } from "../../plugin/index.ts";

export interface ListPage {
  /** Those rows that are objects. */
  readonly rows: readonly JsonObject[];
  /** What stands beside the list; empty where it stands alone. */
  readonly otherFields: JsonObject;
}

export interface ListLocation {
  /** The names that a list may stand under. */
  readonly fields: readonly [string, ...string[]];
  /** It may also stand alone. */
  readonly mayBeTopLevel?: true;
  /** Where there are none, the whole answer is {}. */
  readonly mayBeMissing?: true;
  readonly headers?: Record<string, string>;
}

export const asNonEmptyText = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined;
export const asPositiveCount = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : undefined;

const unavailable = (message: string): never =>
  fail("upstream", message, { code: "models_unavailable" });

/** One page of a list of models. */
export async function fetchListPage(
  line: ProviderClient,
  path: string,
  of: ListLocation,
): Promise<ListPage> {
  const answer = await line.fetch(path, of.headers && { headers: of.headers });
  if (!answer.ok) unavailable(`The list of models was answered with status ${answer.status}.`);
  const text = await answer.text();
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return failUnexpectedShape(of, text.trim() === "" ? "nothing" : "no JSON");
  }
  return parseListPage(body, of);
}

export function parseListPage(body: unknown, of: ListLocation): ListPage {
  const json = asObject(body);
  const found = of.fields.map((name) => json?.[name]).find((value) => value !== undefined);
  const empty = of.mayBeMissing && json && Object.keys(json).length === 0 ? [] : undefined;
  const rows: unknown = of.mayBeTopLevel && Array.isArray(body) ? body : (found ?? empty);
  if (!Array.isArray(rows)) return failUnexpectedShape(of, describeShape(body));
  return { rows: rows.filter(isObject), otherFields: json ?? {} };
}

function failUnexpectedShape({ fields, mayBeTopLevel }: ListLocation, came: string): never {
  const expected = [...fields.map((name) => `{"${name}": […]}`), ...(mayBeTopLevel ? ["[…]"] : [])];
  return unavailable(
    `The answer is not a list of models: ${expected.join(" or ")} was expected, and ${came} came.`,
  );
}

/** Upstream's names, and none of its values: `{"error", "status"}`. */
function describeShape(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a bare list";
  if (typeof value !== "object") return `a ${typeof value === "string" ? "text" : typeof value}`;
  const names = Object.keys(value);
  const shown = names.slice(0, 4).map((name) => JSON.stringify(name.slice(0, 30)));
  return `{${shown.join(", ")}${names.length > shown.length ? ", …" : ""}}`;
}
