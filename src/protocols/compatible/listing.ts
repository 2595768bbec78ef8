// A provider's answer to the question what it has. Upstream may send anything: what is not a list of models is said in words,
// with what was expected and what came, and one row of another shape is left out.
import { isObject, object } from "../json.ts";
import { fail, type JsonObject, type ProviderAccess } from "../../plugin/index.ts";

export interface Page {
  /** Those rows that are objects. */
  readonly rows: readonly JsonObject[];
  /** What stands beside the list; empty where it stands alone. */
  readonly beside: JsonObject;
}

export interface ListPlace {
  /** The names that a list may stand under. */
  readonly under: readonly [string, ...string[]];
  /** It may also stand alone. */
  readonly bare?: true;
  /** Where there are none, the whole answer is {}. */
  readonly absent?: true;
  readonly headers?: Record<string, string>;
}

export const textIn = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined;
export const countIn = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : undefined;

const unavailable = (message: string): never =>
  fail("upstream", message, { code: "models_unavailable" });

/** One page of a list of models. */
export async function page(line: ProviderAccess, path: string, of: ListPlace): Promise<Page> {
  const answer = await line.fetch(path, of.headers && { headers: of.headers });
  if (!answer.ok) unavailable(`The list of models was answered with status ${answer.status}.`);
  const text = await answer.text();
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return unlike(of, text.trim() === "" ? "nothing" : "no JSON");
  }
  return pageOf(body, of);
}

export function pageOf(body: unknown, of: ListPlace): Page {
  const said = object(body);
  const found = of.under.map((name) => said?.[name]).find((value) => value !== undefined);
  const empty = of.absent && said && Object.keys(said).length === 0 ? [] : undefined;
  const rows: unknown = of.bare && Array.isArray(body) ? body : (found ?? empty);
  if (!Array.isArray(rows)) return unlike(of, shapeOf(body));
  return { rows: rows.filter(isObject), beside: said ?? {} };
}

function unlike({ under, bare }: ListPlace, came: string): never {
  const expected = [...under.map((name) => `{"${name}": […]}`), ...(bare ? ["[…]"] : [])];
  return unavailable(
    `The answer is not a list of models: ${expected.join(" or ")} was expected, and ${came} came.`,
  );
}

/** Upstream's names, and none of its values: `{"error", "status"}`. */
function shapeOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a bare list";
  if (typeof value !== "object") return `a ${typeof value === "string" ? "text" : typeof value}`;
  const names = Object.keys(value);
  const shown = names.slice(0, 4).map((name) => JSON.stringify(name.slice(0, 30)));
  return `{${shown.join(", ")}${names.length > shown.length ? ", …" : ""}}`;
}
