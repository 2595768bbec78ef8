import { isPromise } from "../../lib/promise.ts";
import { wallClock } from "../../lib/wall-clock.ts";
import { put } from "../../lib/member.ts";
import { fail } from "../../model/error.ts";
import type { Body, HeadersIn, HeadersOut } from "../../model/values.ts";
import type { Path, Protocol } from "../../plugin/protocol.ts";
import type { WireEndpoint } from "../../plugin/provider.ts";
import { ACCOUNTS, ROUTING } from "../../protocols/look/index.ts";
import { telling } from "../accounts.ts";
import { conversationOf } from "../choosing/conversation.ts";
import type { HostCall } from "../call.ts";
import { SECRET_HEADERS } from "../secret-headers.ts";
import { atOnce } from "../hook-failures.ts";
import { prepare } from "../hooks.ts";
import { formType } from "../form/head.ts";
import { pathNamed } from "./path.ts";
import { mayBegin, mayLeave } from "./permission.ts";
import { OutgoingRequest } from "./outgoing-request.ts";
import { receipts } from "../candidates/privacy.ts";
import { traceHeaders } from "../trace.ts";

/** The request as this endpoint must hear it: the client's bytes with edits, or the codec's body. */
export function encode(
  call: HostCall,
  protocol: Protocol,
  endpoint: WireEndpoint,
): OutgoingRequest {
  const x = call.exchange;
  const { received, frontend, req } = x["~"];
  const client = protocol.client!;
  const verbatim = call.lane === "verbatim";
  mayBegin(call);
  const bodiless = x.method === "GET" || x.method === "DELETE";
  const path = pathOf(
    pathNamed(call.name, endpoint, protocol) ??
      fail("unsupported", `${call.id} has no ${call.name}.`, { code: "no_such_operation" }),
    call,
  );
  const out = new OutgoingRequest({
    method: x.op === "relay" ? x.method : "POST",
    path,
    body: bodiless ? null : verbatim ? received!.sent : translate(call, protocol),
    raw: verbatim ? received!.raw : undefined,
    spans: verbatim ? received!.spans : undefined,
    form: verbatim ? received!.form : undefined,
    named: verbatim ? received!.survey.named : undefined,
  });
  out.header("accept-encoding", "identity");
  const form = verbatim ? received!.form : undefined;
  if (!bodiless) out.header("content-type", form ? formType(form.boundary) : "application/json");
  for (const name in endpoint.headers) out.header(name, endpoint.headers[name]);
  if (verbatim) {
    passing(protocol.headers?.request, req.headers, (name, value) => {
      if (!SECRET_HEADERS.has(name)) out.header(name, value);
    });
    for (const field in received!.edits) out.set(field, received!.edits[field]);
    if (out.get("model") !== undefined) out.set("model", call.model);
  }
  anonymous(call, out);
  atOnce(client.prepare?.(out, call));
  atOnce(endpoint.prepare?.(out, call));
  if (call.unbound) atOnce(client.bound?.leave(out, call));
  if (endpoint.affinity) tellConversation(call, out, endpoint.affinity);
  prepare(frontend.chain, out, call);
  const trace = traceHeaders(call);
  for (const name in trace) out.header(name, trace[name]);
  if (x.privacy !== "off") clearHeaders(call, protocol, endpoint, out);
  mayLeave(call, out);
  return out;
}

/**
 * Under Service-ZDR a header of the client leaves only with the words that the protocol's review names, whether the host or the
 * provider's plugin put it there. Other headers are the gateway's own. A client that relies on a word that is left out reads that in
 * the warnings; ids of a client's own are left out silently.
 */
function clearHeaders(
  call: HostCall,
  { headers }: Protocol,
  endpoint: WireEndpoint,
  out: OutgoingRequest,
): void {
  const { req } = call.exchange["~"];
  const reviewed = headers?.reviewed ?? {};
  for (const [name, value] of Object.entries(out.headers)) {
    const isListed = Object.hasOwn(reviewed, name);
    if (value === undefined || OWN_HEADERS.has(name) || value === endpoint.headers?.[name])
      continue;
    if (!isListed && req.headers[name] === undefined) continue;
    if (call.policy.controls?.some((control) => control.headers?.[name] === value)) continue;
    const words = value.split(",").map((word) => word.trim());
    const left = isListed ? words.filter((word) => reviewed[name]!.includes(word)) : [];
    if (left.length === words.length) continue;
    if (isListed) call.lose(name, "dropped", "zdr_unreviewed_header");
    out.header(name, left.length > 0 ? left.join(",") : endpoint.headers?.[name]);
  }
}

/** Set by the host, whatever the client sent by these names. */
const OWN_HEADERS: ReadonlySet<string> = new Set(["accept-encoding", "content-type"]);

/** Only where requests are kept together anyhow: to a provider it says which of them belong together, and nothing else. */
function tellConversation(
  { exchange: x }: HostCall,
  out: OutgoingRequest,
  { field, header }: NonNullable<WireEndpoint["affinity"]>,
): void {
  const { resolution, frontend } = x["~"];
  if (resolution?.pick !== "sticky" || x.privacy !== "off" || x.op !== "generate") return;
  const conversation = conversationOf(x, frontend.server);
  if (conversation === undefined) return;
  if (field !== undefined && out.get(field) === undefined) out.set(field, conversation);
  if (header !== undefined && out.headers[header] === undefined) out.header(header, conversation);
}

/** A body may not say where it goes or on which account. */
function anonymous(call: HostCall, out: OutgoingRequest): void {
  for (const field of out.among(NOT_FOR_A_BODY)) {
    const said = out.get(field) !== null;
    out.drop(field);
    if (said && !ROUTING.includes(field)) call.lose(field, "dropped", "account_field");
  }
}

const NOT_FOR_A_BODY: ReadonlySet<string> = new Set([...ROUTING, ...ACCOUNTS]);

/**
 * Fields that no codec knows go along, unless the model is known to refuse them. What the target's codec knows comes from the
 * request's own words alone: merged from another protocol's body, it would be a field that nothing here has looked at.
 */
function translate(call: HostCall, protocol: Protocol): Body {
  const x = call.exchange;
  const request = x["~"].rewritten ?? x.request;
  const said: unknown = protocol.client!.request(request, call);
  // Spread, anything else would be a body without members, which leaves and is billed.
  if (!isBody(said)) throw new TypeError(`${protocol.id}: request gave something that is no body`);
  const body: Record<string, Body[string]> = { ...said };
  for (const [field, value] of Object.entries(request.rest)) {
    if (Object.hasOwn(body, field) || ROUTING.includes(field)) continue;
    if (protocol.id !== x.protocol && protocol.client!.knows?.(field))
      call.lose(field, "dropped", "foreign_field");
    else if (call.info.refuses?.includes(field)) call.lose(field, "dropped", "refused_by_model");
    else put(body, field, value);
  }
  return body;
}

const isBody = (said: unknown): said is Body =>
  typeof said === "object" && said !== null && !Array.isArray(said) && !isPromise(said);

const pathOf = (path: Path, call: HostCall): string =>
  typeof path === "string" ? path : path(call);

/** Headers that a protocol lets through; a trailing * is a prefix. */
function passing(
  list: readonly string[] | undefined,
  headers: HeadersIn,
  each: (name: string, value: string) => void,
): void {
  for (const pattern of list ?? []) {
    if (!pattern.endsWith("*")) {
      const value = headers[pattern];
      if (value !== undefined) each(pattern, Array.isArray(value) ? value.join(", ") : value);
      continue;
    }
    const prefix = pattern.slice(0, -1);
    for (const name in headers) {
      const value = headers[name];
      if (name.startsWith(prefix) && value !== undefined)
        each(name, Array.isArray(value) ? value.join(", ") : value);
    }
  }
}

/** Headers that tell of the operator's account: no protocol's list lets these through. */
const ACCOUNT =
  /rate-?limit|organi[sz]ation|project|workspace|account|tenant|cookie|credit|balance|quota/;

/** What of an upstream's head reaches a client, by the protocol's list. */
export const answering = (
  list: readonly string[] | undefined,
  headers: HeadersIn,
  each: (name: string, value: string) => void,
): void =>
  passing(list, headers, (name, value) => {
    if (!ACCOUNT.test(name)) each(name, value);
  });

/** Everything the client may know before the first byte of an answer. */
export function headOf(call: HostCall, upstream: HeadersIn): HeadersOut {
  const x = call.exchange;
  const { frontend, gen, branch } = x["~"];
  const limits = telling(x["~"].limits, branch);
  const head: Record<string, string | undefined> = {};
  call.head = head;
  const own = frontend.server?.head?.({ id: x.id, limits, now: wallClock() });
  for (const name in own) head[name] = own[name];
  head["x-tollgate-generation"] = String(gen.number);
  head["x-tollgate-warnings"] = call.warnings;
  const receipt = receipts(x, call.promised);
  for (const name in receipt) head[name] = receipt[name];
  const protocol = call.candidate["~"].endpoint.protocol;
  if (call.lane === "verbatim" && protocol)
    answering(protocol.headers?.response, upstream, (name, value) => {
      head[name] ??= gen.mask(value);
    });
  return head;
}
