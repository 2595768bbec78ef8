import { BOUNDS } from "../../lib/bounds.ts";
import { fail } from "../../model/error.ts";
import { failBoundExceeded } from "../../model/bound-exceeded.ts";
import type { Operation } from "../../model/request.ts";
import { isFilePart, type Body, type Field, type Opt } from "../../model/values.ts";
import type { PipelineRoute } from "../../plugin/frontend.ts";
import type { Protocol, ServerHalf } from "../../plugin/protocol.ts";
import type { RequestFacts } from "../../plugin/references.ts";
import { referencedFeatures, findReferences } from "../../protocols/references/index.ts";
import { yieldForLargeBody } from "../../lib/yield.ts";
import { rejectRetention } from "../privacy/zero-retention.ts";
import type { HostExchange } from "../exchange/exchange.ts";
import type { MultipartLayout } from "../body/multipart-body.ts";
import type { MountedFrontend } from "../exchange/mounted.ts";
import {
  readBody,
  prepareToReadBody,
  isBodiless,
  NO_BYTES,
  NO_BODY,
  parseBody,
} from "../body/read-body.ts";
import { rejectAmbiguousKeys } from "./ambiguous-keys.ts";

/**
 * Reads the body and checks its size, encoding, uniqueness of meaning, and schema. Stores the
 * result in the exchange.
 */
export async function receive(x: HostExchange): Promise<HostExchange> {
  const state = x.state;
  const { gen, route, connection } = state;
  if (!route) throw new Error(`${x.path} is served by its frontend and reads no body.`);
  const bodiless = isBodiless(x.method);
  prepareToReadBody(x, bodiless ? "none" : (route.body ?? "json"));
  const waitStart = performance.now();
  const raw = bodiless ? NO_BYTES : await readBody(x);
  // The time to wait for the body is not counted as the gateway's own time.
  connection.externalWaitMs += performance.now() - waitStart;
  const parsed = bodiless
    ? NO_BODY
    : parseBody(raw, connection.req.headers["content-type"]!, gen.maxJsonValues);
  const { body, spans, multipart, hasCaseVariants } = "then" in parsed ? await parsed : parsed;
  // If a route speaks several protocols, the frontend decides which one is used. The body can be
  // validated only after that.
  const earlyRead = route.protocols && route.readInput && (await route.readInput(x, body));
  if (earlyRead?.protocol) state.frontend = frontendFor(x, route, earlyRead.protocol);
  const { server } = state.frontend;
  if (!bodiless) validateBody(state.frontend, body, hasCaseVariants);
  const pause = yieldForLargeBody(raw.length);
  if (pause) await pause;
  const originalFacts = bodiless ? NO_FACTS : analyzeBody(server, body);
  if (x.privacy !== "off") rejectRetention(x, originalFacts);
  const read = earlyRead ?? (route.readInput && (await route.readInput(x, body)));
  // The frontend may name a target. In that case the body need not contain a model.
  const pinned = typeof read?.model === "object" ? read.model : undefined;
  const model = read?.model ?? body["model"];
  if (!pinned && typeof model !== "string")
    fail("invalid", "Missing model: it must be a string.", {
      param: "model",
      code: "invalid_request",
    });
  const effectiveBody = read?.edits ? withEdits(body, read.edits) : body;
  state.body.received = {
    raw,
    inputBytes: raw.length + bytesOf(read?.edits),
    spans,
    multipart,
    body: effectiveBody,
    facts: effectiveBody === body ? originalFacts : analyzeBody(server, effectiveBody),
    model: pinned ? `${pinned.provider}/${pinned.model}` : (model as string),
    pinnedTarget: pinned,
    stream: read?.stream ?? isStreamRequested(effectiveBody["stream"], multipart),
    actionType: read?.actionType ?? route.actionType,
    action: read?.action ?? route.action ?? route.actionType,
    originalBody: body,
    edits: read?.edits,
    record: read?.record,
    answer: read?.answer,
    background: read?.background,
    continues: read?.continues,
  };
  return x;
}

/** Returns the body with fields replaced. A field that is replaced by undefined is removed. */
export function withEdits(body: Body, edits: Body): Body {
  const edited: { [field: string]: Opt<Field> } = { ...body, ...edits };
  for (const field in edits) if (edits[field] === undefined) delete edited[field];
  return edited;
}

const NO_FACTS: RequestFacts = { features: [], references: [] };

/**
 * Analyzes a body: features that the protocol finds, and references from the tables that apply to
 * all protocols.
 */
export function analyzeBody(server: ServerHalf<Operation> | undefined, body: Body): RequestFacts {
  const survey = server?.analyze(body) ?? NO_FACTS;
  if (survey.references && survey !== NO_FACTS) return survey;
  const named = findReferences(body);
  if (named.length === 0) return { ...survey, references: named };
  return {
    ...survey,
    references: named,
    features: [...new Set([...referencedFeatures(named), ...survey.features])],
  };
}

/** Whether the client requested a stream. In a form, all values are text. */
const isStreamRequested = (value: Opt<Field>, form: MultipartLayout | undefined): boolean =>
  value === true || (form !== undefined && value === "true");

/** Returns the frontend for a protocol. Throws if the route does not declare the protocol. */
function frontendFor(
  x: HostExchange,
  { protocols }: PipelineRoute,
  chosen: Protocol,
): MountedFrontend {
  const { frontend } = x.state;
  const found = protocols?.includes(chosen) ? frontend.byProtocol.get(chosen) : undefined;
  if (chosen === frontend.protocol) return frontend;
  if (!found) throw new Error(`${x.path} does not name the protocol ${chosen.id}.`);
  return found;
}

/**
 * Validates a body: it has one meaning only, respects the bounds, and matches the protocol's
 * schema.
 */
function validateBody({ server, validate }: MountedFrontend, body: Body, odd: boolean): void {
  if (odd) rejectAmbiguousKeys(body, server?.schema);
  const tools = body["tools"];
  if (Array.isArray(tools) && tools.length > BOUNDS.tools.max)
    failBoundExceeded("tools", undefined, { param: "tools" });
  const wrong = validate(body);
  if (wrong)
    fail("invalid", `${wrong.pointer === "" ? "The body" : wrong.pointer} ${wrong.message}.`, {
      param: toDottedPath(wrong.pointer),
      code: "invalid_request",
    });
}

export function bytesOf(edits: Body | undefined): number {
  let sum = 0;
  for (const field in edits)
    for (const one of [edits[field]].flat() as readonly unknown[])
      sum += isFilePart(one) ? one.data.length : Buffer.byteLength(JSON.stringify(one) ?? "");
  return sum;
}

/**
 * Converts a JSON pointer to the form that users of SDKs know: "/messages/0/role" becomes
 * "messages.0.role".
 */
const toDottedPath = (pointer: string): string | undefined =>
  pointer === "" ? undefined : pointer.slice(1).replaceAll("/", ".");
