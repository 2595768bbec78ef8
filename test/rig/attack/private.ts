// Service-ZDR: required, with random headers, query parameters, and body members. Each byte that
// reaches the upstream is the gateway's own, or belongs to a field or a header value on the
// target's allowlist.
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { gemini } from "tollgate/protocols/gemini";
import {
  mergeAllowlist,
  parseAllowances,
  findDisallowedField,
} from "tollgate/protocols/references";
import { messages } from "tollgate/protocols/messages";
import { responses } from "tollgate/protocols/responses";
import { jsonResponse, say, startUpstream, type UpstreamRequest } from "tollgate/testing";
import type { JsonObject, Protocol } from "tollgate/plugin";
import { startDaemon } from "../../kit/process/daemon.ts";
import { inAny } from "../../protocols/gemini/speech.ts";
import type { Chance } from "../rig.ts";
import type { Attack } from "./target.ts";

type Headers = Record<string, string>;

/** Part of each word that the client invents. */
const MARK = "xq7mark";

const TARGETS: Readonly<Record<string, Protocol>> = {
  chat: chatCompletions(),
  messages: messages(),
  responses: responses(),
  gemini: gemini(),
};

const yaml = (url: string) => {
  const zdr = "zdr: { declared: true, until: 2099-01-01 }";
  const provider = (name: string, use: string, path: string, more = "") =>
    `  ${name}: { use: ${use}, credentials: [{ name: main, with: { api_key: k-${name} }, ${zdr} }], with: { base_url: "${url}/${name}${path}" }${more} }\n`;
  return `frontends: [chat-completions, messages, responses, gemini]
middleware: [auth, zdr, limits, usage]
store: memory
providers:
${provider("chat", "openai-compatible", "/v1")}${provider("messages", "anthropic-compatible", "/v1")}${provider("responses", "openai", "/v1", ", models: { m: { protocols: [responses] } }")}${provider("gemini", "google", "")}`;
};

/** A client of each protocol, with a body that every target's allowlist accepts. */
const schema = { type: "object", properties: { a: { type: "string" } } };
const user = [
  { role: "user", content: [{ type: "text", text: "a" }] },
  { role: "assistant", content: "b" },
  { role: "user", content: "c" },
];
const CLIENTS: Readonly<Record<string, { path: string; body: JsonObject }>> = {
  chat: {
    path: "/v1/chat/completions",
    body: {
      messages: user,
      max_tokens: 9,
      stream_options: { include_usage: true },
      stream: true,
      tools: [{ type: "function", function: { name: "f", parameters: schema } }],
    },
  },
  messages: {
    path: "/v1/messages",
    body: {
      max_tokens: 9,
      system: [{ type: "text", text: "s" }],
      messages: user,
      tools: [{ name: "f", input_schema: schema }],
    },
  },
  responses: {
    path: "/v1/responses",
    body: {
      store: false,
      input: [{ type: "message", role: "user", content: [{ type: "input_text", text: "a" }] }],
      tools: [{ type: "function", name: "f", parameters: schema }],
    },
  },
  gemini: {
    path: "/v1beta/models",
    body: {
      contents: [{ role: "user", parts: [{ text: "a" }] }],
      generationConfig: { maxOutputTokens: 9 },
      tools: [{ functionDeclarations: [{ name: "f", parameters: schema }] }],
    },
  },
};

/** Header in which a client of this protocol sends its key. Default: `authorization`. */
const KEYS: Readonly<Record<string, string>> = { messages: "x-api-key", gemini: "x-goog-api-key" };

/** Headers that a protocol forwards. */
const PASSED: Readonly<Record<string, readonly string[]>> = Object.fromEntries(
  Object.entries(TARGETS).map(([id, { headers }]) => [
    id,
    (headers?.request ?? []).map((name) => name.replace("*", "session-id")),
  ]),
);
/** The same for all protocols, and headers that clients and proxies send. */
const HEADERS: readonly string[] = [
  ...Object.values(PASSED).flat(),
  ..."user-agent referer cookie x-app x-title http-referer x-request-id x-session-id x-session-affinity x-client-request-id traceparent tracestate baggage openai-organization openai-project openai-beta anthropic-beta x-goog-user-project x-goog-api-client x-forwarded-for forwarded x-stainless-lang x-stainless-retry-count idempotency-key accept accept-language from via".split(
    " ",
  ),
];
/** Members that some provider knows, and that store, name, or reveal something. */
const MEMBERS =
  "metadata user safety_identifier session_id prompt_cache_key previous_response_id conversation container extra_body provider transforms route trace labels cachedContent safetySettings mcp_servers context_management prediction web_search_options cache_control annotations id name".split(
    " ",
  );

function headersOf(of: Chance, client: string): Headers {
  const drawn: Headers = {};
  const passed = PASSED[client]!;
  for (let n = of.below(5); n > 0; n--) {
    const name = of.often(0.2)
      ? `x-${MARK}-${of.below(1e6)}`
      : of.one(passed.length > 0 && of.often(0.5) ? passed : HEADERS);
    const reviewed = Object.values(TARGETS).flatMap(
      ({ headers }) => headers?.zdrAllowed?.[name] ?? [],
    );
    const words = Array.from({ length: 1 + of.below(3) }, () =>
      reviewed.length > 0 && of.often(0.6) ? of.one(reviewed) : `${MARK}-${of.below(1e6)}`,
    );
    drawn[name] = words.join(of.one([",", ", ", " , "]));
  }
  return drawn;
}

/**
 * Objects of a body whose members are on an allowlist one by one. The content of a schema is the
 * client's own.
 */
function places(value: unknown, found: JsonObject[] = []): JsonObject[] {
  if (Array.isArray(value)) for (const each of value) places(each, found);
  else if (typeof value === "object" && value !== null && value !== schema) {
    found.push(value as JsonObject);
    for (const each of Object.values(value)) places(each, found);
  }
  return found;
}

/** `added`: the number of members that the client's protocol need not know. */
function bodyOf(of: Chance, body: JsonObject): { body: JsonObject; added: number } {
  let added = 0;
  const copy = copied(body) as JsonObject;
  for (let n = of.often(0.4) ? 0 : 1 + of.below(2); n > 0; n--) {
    const value = `${MARK}-${of.below(1e6)}`;
    const name = of.often(0.5) ? `${MARK}_${of.below(1e6)}` : of.one(MEMBERS);
    const at = of.one(places(copy)) as Record<string, unknown>;
    if (Object.hasOwn(at, name)) continue;
    at[name] = of.one<unknown>([value, [value], { [value]: value }, { type: value }, true]);
    added++;
  }
  return { body: copy, added };
}
const copied = (value: unknown): unknown =>
  value === schema || typeof value !== "object" || value === null
    ? value
    : Array.isArray(value)
      ? value.map(copied)
      : Object.fromEntries(Object.entries(value).map(([name, each]) => [name, copied(each)]));

const queryOf = (of: Chance): string =>
  Array.from({ length: of.below(3) }, () =>
    of.often(0.5) ? `beta=${MARK}` : `${MARK}${of.below(9)}=${of.below(9)}`,
  ).join("&");

/** Generated by the gateway for each call. */
const VARIES = new Set(["content-length", "host"]);

/**
 * Returns what is wrong with the outgoing request. `plain`: the same client's request without its
 * own values.
 */
function judged(target: string, sent: UpstreamRequest, plain: UpstreamRequest): string[] {
  const wrong: string[] = [];
  const protocol = TARGETS[target]!;
  const reviewed = protocol.headers?.zdrAllowed ?? {};
  for (const [name, value] of Object.entries(sent.headers)) {
    if (VARIES.has(name) || value === plain.headers[name]) continue;
    const words = String(value).split(",");
    const left = words.filter((word) => !reviewed[name]?.includes(word.trim()));
    if (left.length > 0) wrong.push(`the header ${name}: ${left.join()}`);
  }
  const query = sent.query.toString();
  if (sent.path !== plain.path || query !== plain.query.toString())
    wrong.push(`the address ${sent.path}?${query}`);
  const body = sent.json() as JsonObject;
  const found = findDisallowedField(
    body,
    mergeAllowlist(protocol.zdrAllowedFields!),
    parseAllowances([]),
  );
  if (found) wrong.push(`the field ${JSON.stringify(found)}`);
  if (sent.body.includes(`"${MARK}`) && JSON.stringify(body).includes(`"${MARK}_`))
    wrong.push("a member with a made-up name");
  return wrong;
}

export const privateAttack = (requests: number): Attack => ({
  name: `${requests} requests under Service-ZDR with headers, parameters, and members of their own`,
  async run({ chance, noted }) {
    const wrong: string[] = [];
    await using up = await startUpstream({
      "GET /*": jsonResponse({ object: "list", data: [] }),
      "POST /*": (asked) =>
        inAny(say("Hello"), asked) ?? jsonResponse({ error: { message: "no" } }, 400),
    });
    await using at = await startDaemon({ yaml: yaml(up.url) });
    const send = async (
      client: string,
      target: string,
      body: JsonObject,
      more: Headers,
      query = "",
    ) => {
      const { path } = CLIENTS[client]!;
      const model = `${target}/m`;
      const place =
        client === "gemini" ? `${path}/${encodeURIComponent(model)}:generateContent` : path;
      up.reset();
      const res = await fetch(`${at.url}${place}${query && `?${query}`}`, {
        method: "POST",
        headers: {
          ...more,
          "content-type": "application/json",
          "service-zdr": "required",
          [KEYS[client] ?? "authorization"]: KEYS[client] ? at.key : `Bearer ${at.key}`,
        },
        body: JSON.stringify(client === "gemini" ? body : { ...body, model }),
      });
      const told = await res.text();
      return {
        status: res.status,
        told,
        sent: up.requests.filter(({ method }) => method === "POST"),
      };
    };
    const plain = new Map<string, UpstreamRequest>();
    for (const client of Object.keys(CLIENTS))
      for (const target of Object.keys(TARGETS)) {
        const { status, told, sent } = await send(client, target, CLIENTS[client]!.body, {});
        if (status !== 200 || !sent[0]) wrong.push(`${client} to ${target}: ${status} ${told}`);
        else plain.set(`${client} ${target}`, sent[0]);
      }
    if (wrong.length > 0) return wrong;
    let [left, refused] = [0, 0];
    for (let i = 0; i < requests; i++) {
      const client = chance.one(Object.keys(CLIENTS));
      // Bytes that are forwarded unchanged are most likely to leak.
      const target = chance.often(0.5) ? client : chance.one(Object.keys(TARGETS));
      const [headers, query] = [headersOf(chance, client), queryOf(chance)];
      const { body, added } = bodyOf(chance, CLIENTS[client]!.body);
      const { status, told, sent } = await send(client, target, body, headers, query);
      const what = `${client} to ${target} ${JSON.stringify({ headers, query, body })}`;
      const isFine = added === 0 && headers["anthropic-version"] === undefined;
      if (status >= 500 || (isFine && status !== 200))
        wrong.push(`${what}: ${status} ${told.slice(0, 200)}`);
      left += sent.length;
      if (status !== 200) refused++;
      for (const one of sent)
        for (const found of judged(target, one, plain.get(`${client} ${target}`)!))
          wrong.push(`${found} left: ${what}`);
    }
    if (requests > 50 && (left < requests / 4 || refused === 0))
      wrong.push(`only ${left} of ${requests} were sent, ${refused} were refused`);
    noted(`Service-ZDR: ${requests} requests, ${left} sent, ${refused} refused`);
    return wrong;
  },
});
