// What hooks give, before it is used: what cannot be is a failure of that hook, by its name, and of nothing that stands behind it.
// Each is looked at once and from the outside: what a codec relies on within it, the codec says.
import { ERRORS } from "../model/error.ts";
import type { ModelEvent } from "../model/event.ts";
import type { ModelRequest } from "../model/request.ts";
import type { Body } from "../model/values.ts";
import type { Exchange } from "../plugin/exchange.ts";
import type { Charge, Exclusion, RouteResult } from "../plugin/middleware.ts";
import type { Limit } from "../plugin/limit.ts";
import { LIMIT_SPANS, LIMIT_UNITS } from "../plugin/limit-words.ts";
import { unusable } from "./hook-failures.ts";

const isObject = (it: unknown): it is Readonly<Record<string, unknown>> =>
  typeof it === "object" && it !== null;

/** A request has the fields that it had, each of the same sort: a list of things is one still. */
export function checkRequest(said: ModelRequest, before: ModelRequest): void {
  if (said === before) return;
  if (!isObject(said)) throw unusable("rewrite gave no request");
  const after: Readonly<Record<string, unknown>> = said;
  for (const [field, was] of Object.entries(before)) {
    const is = after[field];
    if (is === was || was === undefined) continue;
    if (typeof is !== typeof was || Array.isArray(is) !== Array.isArray(was) || is === null)
      throw unusable(`rewrite gave a request whose ${field} cannot be used`);
    if (Array.isArray(is) && !is.every((one) => isObject(one) || typeof one === "string"))
      throw unusable(`rewrite gave a request with something else among its ${field}`);
  }
  if (said.kind !== before.kind) throw unusable(`rewrite made a ${before.kind} something else`);
}

/** Which model is asked, and how it answers, was read already. */
const READ = ["model", "stream"] as const;

type Checked = Exchange & {
  readonly "~": {
    readonly frontend: {
      validate(body: unknown): { pointer: string; message: string } | undefined;
    };
  };
};

/** The body has fields that its protocol can still rely on. */
export function checkEdit(said: Body | undefined, x: Exchange): void {
  if (said === undefined) return;
  if (!isObject(said) || Array.isArray(said)) throw unusable("edit gave something that is no body");
  for (const field of READ)
    if (Object.hasOwn(said, field)) throw unusable(`edit gave another ${field}`);
  for (const field of Object.keys(said))
    if (typeof said[field] === "function" || typeof said[field] === "symbol")
      throw unusable("edit gave what cannot be sent");
  const wrong = (x as Checked)["~"].frontend.validate({ ...x.body, ...said });
  if (wrong) throw unusable(`edit gave a body whose ${wrong.pointer} ${wrong.message}`);
}

export function checkRoute(said: RouteResult): void {
  if (!Array.isArray(said)) throw unusable("route gave no list");
  for (const one of said as readonly unknown[]) {
    if (!isObject(one)) throw unusable("route gave something that is no candidate");
    if ("candidate" in one && !isExclusion(one as unknown as Exclusion))
      throw unusable("route left something out without a candidate, a kind, a code or a message");
  }
}

const isExclusion = ({ candidate, kind, code, message }: Exclusion): boolean =>
  isObject(candidate) &&
  Object.hasOwn(ERRORS, kind) &&
  typeof code === "string" &&
  typeof message === "string";

const UNITS: ReadonlySet<unknown> = new Set<Limit["unit"]>(LIMIT_UNITS);
const SPANS: ReadonlySet<unknown> = new Set<Limit["per"]>(LIMIT_SPANS);
const HOLDS: ReadonlySet<unknown> = new Set<Charge["hold"]>(["hard", "expected", "soft"]);

export function checkCharge(said: Charge | undefined): void {
  if (said === undefined) return;
  if (!isObject(said)) throw unusable("charge gave something that is no charge");
  const { limits = [], labels = {}, hold } = said as Charge;
  if (!Array.isArray(limits) || !limits.every(isLimit))
    throw unusable("charge gave limits that cannot be counted");
  if (!isObject(labels) || !Object.values(labels).every(isLabel))
    throw unusable("charge gave labels that are no text");
  if (hold !== undefined && !HOLDS.has(hold))
    throw unusable("charge gave a hold that there is not");
}

const isLabel = (value: unknown): boolean => value === undefined || typeof value === "string";

const isLimit = (limit: unknown): boolean => {
  if (!isObject(limit)) return false;
  const { scope, unit, max, per } = limit;
  const counts = typeof max === "bigint" ? max >= 0n : typeof max === "number" && max >= 0;
  return typeof scope === "string" && UNITS.has(unit) && SPANS.has(per) && counts;
};

/** Of what an answer is made of, the sort of each part. */
const PARTS: { readonly [T in ModelEvent["type"]]: (event: never) => boolean } = {
  start: () => true,
  open: ({ index, block }: { index: unknown; block: unknown }) =>
    isPlace(index) && isObject(block) && typeof block["type"] === "string",
  delta: ({ index, text }: { index: unknown; text: unknown }) =>
    isPlace(index) && typeof text === "string",
  media: ({ index, media }: { index: unknown; media: unknown }) =>
    isPlace(index) && isObject(media),
  proof: ({ index, proof }: { index: unknown; proof: unknown }) =>
    isPlace(index) && isObject(proof),
  cite: ({ index }: { index: unknown }) => isPlace(index),
  close: ({ index }: { index: unknown }) => isPlace(index),
  item: ({ index, item }: { index: unknown; item: unknown }) => isPlace(index) && isObject(item),
  usage: ({ usage }: { usage: unknown }) => isObject(usage),
  finish: ({ reason }: { reason: unknown }) => typeof reason === "string",
};

const isPlace = (index: unknown): boolean => Number.isSafeInteger(index) && (index as number) >= 0;

/** Of a hook, and of an endpoint that makes its answer itself. */
export function checkEvent(event: ModelEvent): void {
  const type: unknown = isObject(event) ? event.type : undefined;
  if (typeof type !== "string" || !Object.hasOwn(PARTS, type))
    throw unusable("something came that is no event");
  if (!PARTS[type as ModelEvent["type"]](event as never))
    throw unusable(`a ${type} came that cannot be used`);
}
