// Checks results of hooks before they are used. If a result has the wrong form, that hook has
// failed, and the error names it. Only the outer structure is checked. Each codec checks the inner
// values that it relies on.
import { ERRORS } from "../../model/error.ts";
import type { ModelEvent } from "../../model/event.ts";
import type { ModelRequest } from "../../model/request.ts";
import type { Body } from "../../model/values.ts";
import type { RecordedResponse, SyntheticResponse, UpstreamResponse } from "../../plugin/call.ts";
import type { Charge, Exclusion, RouteResult } from "../../plugin/middleware.ts";
import type { Limit } from "../../plugin/store/limit.ts";
import { LIMIT_SPANS, LIMIT_UNITS } from "../../plugin/store/limit-units.ts";
import { invalidResult, type HookedExchange } from "./hook-guard.ts";

const isObject = (it: unknown): it is Readonly<Record<string, unknown>> =>
  typeof it === "object" && it !== null;

/**
 * Throws unless the rewritten request has the same fields as before, each of the same type. For
 * example, a list must remain a list.
 */
export function checkRewriteResult(after: ModelRequest, before: ModelRequest): void {
  if (after === before) return;
  if (!isObject(after)) throw invalidResult("rewrite returned no request");
  const afterFields: Readonly<Record<string, unknown>> = after;
  for (const [field, was] of Object.entries(before)) {
    const is = afterFields[field];
    if (is === was || was === undefined) continue;
    if (typeof is !== typeof was || Array.isArray(is) !== Array.isArray(was) || is === null)
      throw invalidResult(`rewrite returned a request with an invalid ${field}`);
    if (Array.isArray(is) && !is.every((one) => isObject(one) || typeof one === "string"))
      throw invalidResult(`rewrite returned a request with an invalid entry in ${field}`);
  }
  if (after.operation !== before.operation)
    throw invalidResult(`rewrite changed the operation from ${before.operation}`);
}

/**
 * Fields that an edit hook may not change, because the model and the response mode have already
 * been read.
 */
const FIXED_FIELDS = ["model", "stream"] as const;

/** Throws unless the edited body still has fields that its protocol can rely on. */
export function checkEditResult(edits: Body | undefined, x: HookedExchange): void {
  if (edits === undefined) return;
  if (!isObject(edits) || Array.isArray(edits))
    throw invalidResult("edit returned an invalid body");
  for (const field of FIXED_FIELDS)
    if (Object.hasOwn(edits, field)) throw invalidResult(`edit changed ${field}`);
  for (const field of Object.keys(edits))
    if (typeof edits[field] === "function" || typeof edits[field] === "symbol")
      throw invalidResult("edit returned values that cannot be sent");
  if (x.isHypothetical) return;
  const wrong = x.state.frontend.validate({ ...x.body, ...edits });
  if (wrong) throw invalidResult(`edit returned a body whose ${wrong.pointer} ${wrong.message}`);
}

export function checkRouteResult(result: RouteResult): void {
  if (!Array.isArray(result)) throw invalidResult("route returned no list");
  for (const one of result as readonly unknown[]) {
    if (!isObject(one)) throw invalidResult("route returned an unknown candidate");
    if ("candidate" in one && !isExclusion(one as unknown as Exclusion))
      throw invalidResult(
        "route excluded a candidate without naming the candidate, a kind, a code, and a message",
      );
  }
}

const isExclusion = ({ candidate, kind, code, message }: Exclusion): boolean =>
  isObject(candidate) &&
  Object.hasOwn(ERRORS, kind) &&
  typeof code === "string" &&
  typeof message === "string";

/** The result of an attempt hook, by type. */
export type AttemptReply =
  | { readonly type: "upstream"; readonly reply: UpstreamResponse }
  | HookReply;

/** A response that a hook returned in place of the provider's. */
export type HookReply =
  | { readonly type: "recorded"; readonly recorded: RecordedResponse }
  | { readonly type: "synthetic"; readonly synthetic: SyntheticResponse };

/**
 * Classifies the result of an attempt hook by members that only one type of result has. Throws if
 * the result has none of these members. The code that uses the result checks its content.
 */
export function classifyAttemptResult(result: unknown): AttemptReply {
  if (isObject(result)) {
    if ("headers" in result) return { type: "upstream", reply: result as never };
    if ("response" in result) return { type: "synthetic", synthetic: result as never };
    if ("body" in result) return { type: "recorded", recorded: result as never };
  }
  throw invalidResult("attempt returned no response");
}

const LIMIT_UNIT_SET: ReadonlySet<unknown> = new Set<Limit["unit"]>(LIMIT_UNITS);
const LIMIT_WINDOW_SET: ReadonlySet<unknown> = new Set<Limit["per"]>(LIMIT_SPANS);
const BUDGET_MODES: ReadonlySet<unknown> = new Set<Charge["hold"]>(["hard", "expected", "soft"]);

export function checkChargeResult(charge: Charge | undefined): void {
  if (charge === undefined) return;
  if (!isObject(charge)) throw invalidResult("charge returned an invalid charge");
  const { limits = [], labels = {}, hold } = charge as Charge;
  if (!Array.isArray(limits) || !limits.every(isLimit))
    throw invalidResult("charge returned invalid limits");
  if (!isObject(labels) || !Object.values(labels).every(isLabel))
    throw invalidResult("charge returned labels that are not strings");
  if (hold !== undefined && !BUDGET_MODES.has(hold))
    throw invalidResult("charge returned an unknown hold");
}

const isLabel = (value: unknown): boolean => value === undefined || typeof value === "string";

const isLimit = (limit: unknown): boolean => {
  if (!isObject(limit)) return false;
  const { scope, unit, max, per } = limit;
  const counts = typeof max === "bigint" ? max >= 0n : typeof max === "number" && max >= 0;
  return (
    typeof scope === "string" && LIMIT_UNIT_SET.has(unit) && LIMIT_WINDOW_SET.has(per) && counts
  );
};

/** For each event type, checks the types of its members. */
const EVENT_CHECKS: { readonly [T in ModelEvent["type"]]: (event: never) => boolean } = {
  start: () => true,
  open: ({ index, block }: { index: unknown; block: unknown }) =>
    isIndex(index) && isObject(block) && typeof block["type"] === "string",
  delta: ({ index, text }: { index: unknown; text: unknown }) =>
    isIndex(index) && typeof text === "string",
  media: ({ index, media }: { index: unknown; media: unknown }) =>
    isIndex(index) && isObject(media),
  proof: ({ index, proof }: { index: unknown; proof: unknown }) =>
    isIndex(index) && isObject(proof),
  cite: ({ index }: { index: unknown }) => isIndex(index),
  close: ({ index }: { index: unknown }) => isIndex(index),
  item: ({ index, item }: { index: unknown; item: unknown }) => isIndex(index) && isObject(item),
  usage: ({ usage }: { usage: unknown }) => isObject(usage),
  finish: ({ reason }: { reason: unknown }) => typeof reason === "string",
};

const isIndex = (index: unknown): boolean => Number.isSafeInteger(index) && (index as number) >= 0;

/**
 * Throws if an event is invalid. Events come from hooks and from endpoints that produce responses
 * themselves.
 */
export function checkEvent(event: ModelEvent): void {
  const type: unknown = isObject(event) ? event.type : undefined;
  if (typeof type !== "string" || !Object.hasOwn(EVENT_CHECKS, type))
    throw invalidResult("the plugin emitted an invalid event");
  if (!EVENT_CHECKS[type as ModelEvent["type"]](event as never))
    throw invalidResult(`the plugin emitted an invalid ${type} event`);
}
