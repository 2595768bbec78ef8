// Reads a page of a provider's model list. Providers can send anything. If the response is not a
// model list, the error states what was expected and what was received. Rows that are not objects
// are skipped.
import { isObject, asObject } from "../json-values.ts";
import { fail, type JsonObject, type ProviderClient } from "../../plugin/index.ts";

export interface ListPage {
  /** Rows of the list that are objects. */
  readonly rows: readonly JsonObject[];
  /** The object that contains the list. Empty if the list is the whole response. */
  readonly otherFields: JsonObject;
}

export interface ListLocation {
  /** Names of the field that contains the list. */
  readonly fields: readonly [string, ...string[]];
  /** Whether the list can be the whole response. */
  readonly mayBeTopLevel?: true;
  /** Whether the response is `{}` if there are no rows. */
  readonly mayBeMissing?: true;
  readonly headers?: Record<string, string>;
}

export const asNonEmptyText = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined;
export const asPositiveCount = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : undefined;

const unavailable = (message: string): never =>
  fail("upstream", message, { code: "models_unavailable" });

/** Fetches one page of a model list. */
export async function fetchListPage(
  line: ProviderClient,
  path: string,
  of: ListLocation,
): Promise<ListPage> {
  const answer = await line.fetch(path, of.headers && { headers: of.headers });
  if (!answer.ok) unavailable(`The request for the model list returned status ${answer.status}.`);
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
    `The response is not a model list: expected ${expected.join(" or ")}, received ${came}.`,
  );
}

/** Describes a response by its field names, without values: `{"error", "status"}`. */
function describeShape(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a plain list";
  if (typeof value !== "object") return `a ${typeof value === "string" ? "text" : typeof value}`;
  const names = Object.keys(value);
  const shown = names.slice(0, 4).map((name) => JSON.stringify(name.slice(0, 30)));
  return `{${shown.join(", ")}${names.length > shown.length ? ", …" : ""}}`;
}
