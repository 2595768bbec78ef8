import { BOUNDS } from "../../lib/bounds.ts";
import { fail } from "../../model/error.ts";
import { exceed } from "../../model/excess.ts";
import type { Kind } from "../../model/request.ts";
import { isFilePart, type Body, type Field, type Opt } from "../../model/values.ts";
import type { WalkRoute } from "../../plugin/frontend.ts";
import type { Protocol, ServerHalf } from "../../plugin/protocol.ts";
import type { Survey } from "../../plugin/survey.ts";
import { featuresOf, look } from "../../protocols/look/index.ts";
import { breath } from "../bounds/turn.ts";
import { keepsNothing } from "../candidates/privacy.ts";
import type { HostExchange } from "../exchange.ts";
import type { FormLayout } from "../form/body.ts";
import type { MountedFrontend } from "../mounted.ts";
import { collect, expect, isBodiless, NO_BYTES } from "../request/collect.ts";
import { NO_BODY, understand } from "../request/understand.ts";
import { oneReading } from "./ambiguous-keys.ts";

/** The body, now: size, UTF-8, one meaning only, schema. The arrival becomes an exchange. */
export async function receive(x: HostExchange): Promise<HostExchange> {
  const inner = x["~"];
  const { gen, req } = inner;
  const { route } = inner;
  if (!route) throw new Error(`${x.path} is answered by its frontend: it reads no body.`);
  const bodiless = isBodiless(x.method);
  expect(x, bodiless ? "none" : (route.body ?? "json"));
  const asked = performance.now();
  const raw = bodiless ? NO_BYTES : await collect(x);
  // Waiting for it is the client's time, not ours.
  inner.awayMs += performance.now() - asked;
  const understood = bodiless
    ? NO_BODY
    : understand(raw, req.headers["content-type"]!, gen.maxValues);
  const { body, spans, form, odd } = "then" in understood ? await understood : understood;
  // Of several protocols the frontend says which is spoken. What the body must be is known only then.
  const early = route.protocols && route.read && (await route.read(x, body));
  if (early?.protocol) inner.frontend = spoken(x, route, early.protocol);
  const { server } = inner.frontend;
  if (!bodiless) check(inner.frontend, body, odd);
  const pause = breath(raw.length);
  if (pause) await pause;
  const sent = bodiless ? NOTHING : surveyed(server, body);
  if (x.privacy !== "off") keepsNothing(x, sent);
  const read = early ?? (route.read && (await route.read(x, body)));
  // A frontend may name a candidate; a body that holds such a thing names none.
  const pinned = typeof read?.model === "object" ? read.model : undefined;
  const model = read?.model ?? body["model"];
  if (!pinned && typeof model !== "string")
    fail("invalid", "model is required and must be a string.", {
      param: "model",
      code: "invalid_request",
    });
  const seen = read?.edits ? { ...body, ...read.edits } : body;
  inner.received = {
    raw,
    bytes: raw.length + bytesOf(read?.edits),
    spans,
    form,
    body: seen,
    survey: seen === body ? sent : surveyed(server, seen),
    model: pinned ? `${pinned.provider}/${pinned.model}` : (model as string),
    pinned,
    stream: read?.stream ?? isStream(seen["stream"], form),
    op: read?.op ?? route.op,
    name: read?.name ?? route.name ?? route.op,
    sent: body,
    edits: read?.edits,
    record: read?.record,
  };
  return x;
}

const NOTHING: Survey = { features: [], named: [] };

/** What a protocol sees in it, and what stands in the tables that hold for all of them. */
export function surveyed(server: ServerHalf<Kind> | undefined, body: Body): Survey {
  const survey = server?.survey(body) ?? NOTHING;
  if (survey.named && survey !== NOTHING) return survey;
  const named = look(body);
  if (named.length === 0) return { ...survey, named };
  return { ...survey, named, features: [...new Set([...featuresOf(named), ...survey.features])] };
}

/** In a form all is text. */
const isStream = (said: Opt<Field>, form: FormLayout | undefined): boolean =>
  said === true || (form !== undefined && said === "true");

/** The route names every protocol that may be spoken there. */
function spoken(x: HostExchange, { protocols }: WalkRoute, chosen: Protocol): MountedFrontend {
  const { frontend } = x["~"];
  const found = protocols?.includes(chosen) ? frontend.spoken.get(chosen) : undefined;
  if (chosen === frontend.protocol) return frontend;
  if (!found) throw new Error(`${x.path} does not name the protocol ${chosen.id}.`);
  return found;
}

/** What stands in it means one thing, is not too much, and is what the protocol relies on. */
function check({ server, validate }: MountedFrontend, body: Body, odd: boolean): void {
  if (odd) oneReading(body, server?.schema);
  const tools = body["tools"];
  if (Array.isArray(tools) && tools.length > BOUNDS.tools.most)
    exceed("tools", undefined, { param: "tools" });
  const wrong = validate(body);
  if (wrong)
    fail("invalid", `${wrong.pointer === "" ? "The body" : wrong.pointer} ${wrong.message}.`, {
      param: dotted(wrong.pointer),
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

/** "/messages/0/role" → "messages.0.role", as SDK users know it. */
const dotted = (pointer: string): string | undefined =>
  pointer === "" ? undefined : pointer.slice(1).replaceAll("/", ".");
