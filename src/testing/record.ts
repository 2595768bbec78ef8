// What a provider really says, written down as recordings that the laws are checked by: asked once as a stream and once whole, with
// every secret masked before a byte is kept.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { OWN_WORKS } from "../model/own-works.ts";
import type { Kind, ModelRequest } from "../model/request.ts";
import type { JsonObject } from "../model/values.ts";
import type { Definition } from "../plugin/define.ts";
import type { Endpoint, Provider } from "../plugin/provider.ts";
import { addressOf, authOf } from "./conformance/line.ts";
import { secretsIn } from "./conformance/manners.ts";
import { isWire } from "./conformance/work.ts";
import { context } from "./context.ts";
import { sending } from "./outgoing.ts";
import * as pretend from "./pretend.ts";

/** How a provider is asked for its recordings. */
export interface RecordingOptions {
  /** Options and credential, as they would stand under `with:`. */
  readonly with?: Readonly<Record<string, unknown>>;
  readonly credential?: Readonly<Record<string, unknown>>;
  readonly model: string;
  /** What a chat says; "Say hello in three words." unless told. */
  readonly words?: string;
  /** At most so many tokens of answer; 64 unless told. */
  readonly maxTokens?: number;
  /** What its requests go through. Absent: the network. */
  readonly fetch?: typeof fetch;
}

/** One exchange as it happened, masked, before it is written. */
export interface RecordedExchange {
  /** "chat-completions/hello-streamed", "native/hello". */
  readonly name: string;
  readonly request: JsonObject;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** An answer that is larger is no recording. */
const LARGEST = 4 * 1024 * 1024;
const PATIENCE_MS = 120_000;

/** Headers that say something of the answer. All others may be about the account. */
const KEPT = /^(content-type|retry-after|(x-|anthropic-)?ratelimit-[a-z-]+)$/;

/** Asks each of its endpoints that has this kind of work. Rejects with the first thing that fails. */
export async function recorded(
  definition: Definition,
  of: RecordingOptions,
): Promise<RecordedExchange[]> {
  if (definition["~tollgate"] !== "provider")
    throw new Error(`${definition.name} is no provider: there is nothing to record.`);
  const credential = of.credential ?? {};
  const secrets = [
    ...secretsIn(definition.credential, credential),
    ...secretsIn(definition.options, of.with ?? {}),
  ];
  const env = Object.fromEntries(
    Object.entries(process.env).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value]],
    ),
  );
  const through = of.fetch ?? fetch;
  await using lent = context({
    env,
    fetch: async (url, init) => through(url, init as RequestInit),
  });
  const made = (await definition.setup((of.with ?? {}) as never, lent.ctx)) as Provider;
  const exchanges: RecordedExchange[] = [];
  for (const endpoint of made.endpoints) {
    if (endpoint.serves && !endpoint.serves(of.model)) continue;
    for (const stream of isWire(endpoint) && endpoint.streams !== "never" ? [true, false] : [false])
      exchanges.push(...(await asked(endpoint, of, credential, stream)));
  }
  return exchanges.map((each) => masked(each, secrets));
}

function requestOf(endpoint: Endpoint, of: RecordingOptions, stream: boolean): ModelRequest {
  const kind = isWire(endpoint) ? endpoint.protocol.work.kind : endpoint.kind;
  const work = isWire(endpoint) ? endpoint.protocol.work : OWN_WORKS.get(kind);
  const sample = work?.sample(of.model);
  if (!sample) throw new Error(`What is ${kind}? It cannot be asked without its Work.`);
  if (sample.kind !== "chat") return { ...sample, stream } as ModelRequest;
  const text = of.words ?? "Say hello in three words.";
  return {
    ...sample,
    stream,
    turns: [{ role: "user", blocks: [{ type: "text", text }] }],
    output: { maxTokens: of.maxTokens ?? 64 },
  };
}

async function asked(
  endpoint: Endpoint,
  of: RecordingOptions,
  credential: Readonly<Record<string, unknown>>,
  stream: boolean,
): Promise<RecordedExchange[]> {
  const signal = AbortSignal.timeout(PATIENCE_MS);
  const through = of.fetch ?? fetch;
  const request = requestOf(endpoint, of, stream);
  const heard: RecordedExchange[] = [];
  const send = async (url: URL, method: string, headers: object, text: string | undefined) => {
    const body = text === undefined ? null : Buffer.from(text);
    const leaving = { ...headers } as Record<string, string>;
    Object.assign(
      leaving,
      await authOf(endpoint, { method, url, headers: leaving, body, signal }, credential),
    );
    const response = await through(url, { method, headers: leaving, signal, body: text ?? null });
    const bytes = Buffer.from(await response.arrayBuffer());
    if (bytes.length > LARGEST)
      throw new Error(`Its answer has ${bytes.length} bytes, too many to record.`);
    heard.push({
      name: isWire(endpoint)
        ? `${endpoint.protocol.id}/hello${stream ? "-streamed" : "-whole"}`
        : "native/hello",
      request: text === undefined ? {} : (JSON.parse(text) as JsonObject),
      status: response.status,
      headers: Object.fromEntries([...response.headers].filter(([name]) => KEPT.test(name))),
      body: bytes,
    });
    return new Response(bytes, { status: response.status, headers: response.headers });
  };
  if (isWire(endpoint)) {
    const { client, id } = endpoint.protocol;
    const call = pretend.call({ protocol: id, model: of.model, stream });
    const out = sending(client as NonNullable<typeof client>, request as ModelRequest<Kind>, call);
    endpoint.prepare?.(out, call);
    const path = endpoint.paths?.["generate"] ?? client!.paths.generate;
    const url = addressOf(endpoint, typeof path === "string" ? path : path(call));
    const headers = { "content-type": "application/json", ...endpoint.headers, ...out.headers };
    await send(
      url,
      "POST",
      headers,
      JSON.stringify({ ...out.body, ...(stream && { stream: true }) }),
    );
    return heard;
  }
  const call = pretend.call({
    protocol: null,
    model: of.model,
    signal,
    fetch: (url, init = {}) =>
      send(
        addressOf(endpoint, url),
        init.method ?? "GET",
        { ...init.headers },
        init.body?.toString(),
      ),
  });
  for await (const _event of endpoint.run(request as never, call, credential as never));
  // Of several requests the last one has the answer.
  return heard.slice(-1);
}

/** Every secret, in any of its usual clothes, by as many asterisks: lengths stay what they are. */
function masked(exchange: RecordedExchange, secrets: readonly string[]): RecordedExchange {
  const clothes = secrets.flatMap((secret) => [
    secret,
    JSON.stringify(secret).slice(1, -1),
    encodeURIComponent(secret),
    Buffer.from(secret).toString("base64"),
  ]);
  const hide = (text: string) =>
    clothes.reduce((rest, secret) => rest.replaceAll(secret, "*".repeat(secret.length)), text);
  const headers = Object.entries(exchange.headers).map(([name, value]) => [name, hide(value)]);
  return {
    ...exchange,
    request: JSON.parse(hide(JSON.stringify(exchange.request))),
    headers: Object.fromEntries(headers),
    body: Buffer.from(hide(exchange.body.toString("latin1")), "latin1"),
  };
}

/** Writes each in a folder of its own below `folder`, as `recordings()` reads them. Gives the folders. */
export function written(exchanges: readonly RecordedExchange[], folder: string): string[] {
  return exchanges.map(({ name, request, status, headers, body }) => {
    const place = join(folder, name);
    mkdirSync(place, { recursive: true });
    writeFileSync(join(place, "request.json"), `${JSON.stringify(request, undefined, 2)}\n`);
    const lines = Object.entries(headers).map(([key, value]) => `${key}: ${value}`);
    const head = [`HTTP/1.1 ${status}`, ...lines, "", ""].join("\n");
    writeFileSync(join(place, "upstream.http"), Buffer.concat([Buffer.from(head), body]));
    return place;
  });
}
