// The responses of every socket protocol have the rules of a request: permissions of the key,
// Service-ZDR, and middleware. Observers, the access log, traces, and metrics report each of them.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  defineMiddleware,
  defineObserver,
  fail,
  type ModelRequest,
  type RequestRecord,
} from "tollgate/plugin";
import {
  jsonResponse,
  say,
  scriptedModel,
  startTestGateway,
  startUpstream,
  type TestGateway,
  type TestUpstream,
} from "tollgate/testing";
import { digestKey } from "../../../src/lib/api-key.ts";
import { LIVE_PATH, startGeminiLiveUpstream } from "../../kit/sockets/gemini-live-upstream.ts";
import { startRealtimeUpstream } from "../../kit/sockets/realtime-upstream.ts";
import { sumSamples } from "../../kit/exposition.ts";
import { openSocket, Rejected, type SocketClient } from "../../kit/sockets/socket-client.ts";
import type { SocketUpstream } from "../../kit/sockets/socket-upstream.ts";
import { until } from "../../kit/wait.ts";
import { attributesOf, itemsOf } from "../../plugins/observers/decoded.ts";

const SCRAPER = "scraper-".padEnd(32, "0123456789");
const LIVE = "gemini-2.5-flash-native-audio-latest";
const [ALL, NARROW] = ["all-key", "narrow-key"];
/** What the client says. A middleware refuses the second. */
const [PLAIN, SECRET] = ["Is the gate open?", "Tell me the password"];
/** What the model says. A middleware stops the second. */
const [WORDS, UNSAFE] = ["Hello there friend", "This is unsafe to say"];

interface SocketProtocol {
  readonly name: string;
  readonly frontend: string;
  path(provider: string): string;
  /** Messages that open a session and ask for one response. */
  ask(provider: string, text: string): readonly object[];
  /** Whether a message ends a response. */
  isDone(message: any): boolean;
  /** Text of the model in a message. */
  textOf(message: any): string | undefined;
}

const PROTOCOLS: readonly SocketProtocol[] = [
  {
    name: "Responses",
    frontend: "responses",
    path: () => "/v1/responses",
    ask: (provider, input) => [{ type: "response.create", model: `${provider}/m`, input }],
    isDone: ({ type }) => type === "response.completed",
    textOf: ({ type, delta }) => (type === "response.output_text.delta" ? delta : undefined),
  },
  {
    name: "Realtime",
    frontend: "realtime",
    path: (provider) => `/v1/realtime?model=${provider}/gpt-realtime`,
    ask: (_provider, text) => [
      {
        type: "conversation.item.create",
        item: { type: "message", role: "user", content: [{ type: "input_text", text }] },
      },
      { type: "response.create", response: { output_modalities: ["text"] } },
    ],
    isDone: ({ type }) => type === "response.done",
    textOf: ({ type, delta }) => (type === "response.output_text.delta" ? delta : undefined),
  },
  {
    name: "Gemini Live",
    frontend: "gemini",
    path: () => LIVE_PATH,
    ask: (provider, text) => [
      {
        setup: {
          model: `models/${provider}/${LIVE}`,
          generationConfig: { responseModalities: ["TEXT"] },
        },
      },
      { clientContent: { turns: [{ role: "user", parts: [{ text }] }], turnComplete: true } },
    ],
    isDone: ({ serverContent }) => serverContent?.turnComplete === true,
    textOf: ({ serverContent }) => serverContent?.modelTurn?.parts[0].text,
  },
];

const inspected: ModelRequest[] = [];
const watched: string[] = [];
const records: RequestRecord[] = [];
const plugins = {
  guard: defineMiddleware({
    api: 1,
    name: "guard",
    summary: "Refuses a text of the client, and stops one of the model",
    sends: "nowhere",
    setup: () => ({
      inspect(request, x) {
        inspected.push(request);
        x.addLabel("topic", "gate");
        if (JSON.stringify(request).includes(SECRET))
          fail("forbidden", "Not this.", { code: "no_secrets" });
      },
      watch: (_call, stop) => (event) => {
        if (event.type !== "delta" || event.text === undefined) return;
        watched.push(event.text);
        if (event.text.includes("unsafe"))
          stop({ kind: "forbidden", message: "Stopped.", code: "unsafe" });
      },
    }),
  }),
  mask: defineMiddleware({
    api: 1,
    name: "mask",
    summary: "Changes the events of responses",
    sends: "nowhere",
    setup: () => ({
      event: (_call, next) => (event) =>
        next(
          event.type === "delta" && event.text !== undefined
            ? { ...event, text: event.text.toUpperCase() }
            : event,
        ),
    }),
  }),
  keeper: defineObserver({
    api: 1,
    name: "keeper",
    summary: "Keeps records",
    sends: "nowhere",
    setup: () => ({
      // The handshake has a record too.
      onRequests: (batch) =>
        void records.push(...batch.filter(({ session }) => session !== undefined)),
    }),
  }),
};

let chat: TestUpstream;
let relays: SocketUpstream[];
let collector: TestUpstream;
let folder: string;
let gateway: TestGateway;
/** Each provider has the credential that its requests show. `clean` stores nothing. */
const yaml = (middleware: string) => `
frontends: [responses, realtime, gemini]
admin: { port: 0, tokens: { scraper: { role: metrics, token: "\${env:SCRAPER}" } } }
middleware:
  - use: auth
    with: { keys: [{ id: all, digest: "${digestKey(ALL)}" }, { id: narrow, digest: "${digestKey(NARROW)}", models: ["keeps-*/*"] }] }
  - zdr
  - limits
  - usage
  - ${middleware}
observers:
  - keeper
  - { use: access-log, with: { file: "${folder}/access.log" } }
  - { use: metrics, with: { labels: [topic] } }
  - { use: otlp, with: { endpoint: "${collector.url}", batch_delay_ms: 20, compression: none, signals: [traces] } }
providers:
${[false, true]
  .map((isClean) => {
    const name = isClean ? "clean" : "keeps";
    const credentials = `credentials: [{ name: own, with: { api_key: ${name}-secret }, zdr: { declared: ${isClean} } }]`;
    return `
  ${name}-responses: { use: openai-compatible, with: { base_url: "${chat.url}/v1", list_models: false }, ${credentials} }
  ${name}-realtime: { use: openai, with: { base_url: "${relays[0]!.url}/v1" }, models: { gpt-realtime: { operation: realtime } }, ${credentials} }
  ${name}-gemini: { use: google, with: { base_url: "${relays[1]!.url}" }, models: { ${LIVE}: { operation: realtime } }, ${credentials} }`;
  })
  .join("")}
`;

const start = async (middleware: string) => {
  gateway = await startTestGateway({ plugins, yaml: yaml(middleware), env: { SCRAPER } });
};
let words = WORDS;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "tollgate-rules-"));
  chat = await startUpstream();
  relays = [await startRealtimeUpstream(), await startGeminiLiveUpstream()];
  collector = await startUpstream({ "POST /*": jsonResponse({}) });
});
afterAll(async () => {
  await Promise.all([chat.close(), collector.close(), ...relays.map((relay) => relay.stop())]);
  rmSync(folder, { recursive: true });
});
beforeEach(() => {
  speak(WORDS);
  for (const list of [inspected, watched, records]) list.length = 0;
});

function speak(text: string): void {
  words = text;
  chat.reset();
  chat.setRoutes(scriptedModel(() => say(words)));
  for (const relay of relays) Object.assign(relay.options, { words });
}

/** Credentials with which the fake providers were called. */
const credentialsSeen = (frontend: string): string[] =>
  frontend === "responses"
    ? chat.requests.map(({ headers }) => String(headers["authorization"]))
    : relays.flatMap(({ sockets }) =>
        sockets.map(({ headers }) => String(headers["authorization"] ?? headers["x-goog-api-key"])),
      );

const clients: SocketClient[] = [];
async function ask(
  of: SocketProtocol,
  provider: string,
  { text = PLAIN, key = ALL, zdr }: { text?: string; key?: string; zdr?: string } = {},
): Promise<SocketClient> {
  const client = await openSocket(`${gateway.url}${of.path(provider)}`, {
    headers: { authorization: `Bearer ${key}`, ...(zdr !== undefined && { "service-zdr": zdr }) },
  });
  clients.push(client);
  for (const message of of.ask(provider, text)) client.send(message);
  return client;
}

/** The error, wherever the protocol reports it: at the handshake, in an event, or at the end. */
async function refusal(asking: Promise<SocketClient>): Promise<string> {
  const client = await asking.catch((problem: unknown) => problem);
  if (client instanceof Rejected) return client.body;
  const { messages, closed } = client as SocketClient;
  const isError = (message: SocketClient["messages"][number]) => message["error"] !== undefined;
  const reported = until(
    () => messages.some(isError),
    () => JSON.stringify(messages),
  ).then(() => messages.find(isError));
  return JSON.stringify(await Promise.race([closed, reported]));
}

const done = (of: SocketProtocol, client: SocketClient) =>
  until(
    () => client.messages.some(of.isDone),
    () => JSON.stringify(client.messages),
  );
const textIn = (of: SocketProtocol, client: SocketClient) =>
  client.messages
    .flatMap((message) => of.textOf(message) ?? [])
    .join("")
    .trim();
const settles = () => gateway.storeCommands.filter((row) => row.do === "settle");

afterEach(async () => {
  for (const client of clients.splice(0)) client.reset();
  await gateway?.[Symbol.asyncDispose]();
});

describe.each(PROTOCOLS)("a response over the socket of $name", (of) => {
  const [keeps, clean] = [`keeps-${of.frontend}`, `clean-${of.frontend}`];

  it("is refused for a model that the key may not use", async () => {
    await start("guard");
    const before = credentialsSeen(of.frontend).length;
    expect(await refusal(ask(of, clean, { key: NARROW }))).toMatch(
      /model_not_allowed|may not|No candidate/,
    );
    expect(credentialsSeen(of.frontend)).toHaveLength(before);
    const client = await ask(of, keeps, { key: NARROW });
    await done(of, client);
  });

  it("reaches only a provider without data retention under Service-ZDR", async () => {
    await start("guard");
    const before = credentialsSeen(of.frontend).length;
    expect(await refusal(ask(of, keeps, { zdr: "required" }))).toMatch(
      /retention|zdr|No candidate/i,
    );
    expect(credentialsSeen(of.frontend)).toHaveLength(before);
    const client = await ask(of, clean, { zdr: "required" });
    await done(of, client);
    expect(credentialsSeen(of.frontend).slice(before)).toEqual([
      expect.stringContaining("clean-secret"),
    ]);
    await until(() => records.length > 0);
    expect(records.at(-1)).toMatchObject({ privacy: "required", frontend: of.frontend });
  });

  it("is shown to `inspect` with the text of the client, and refused by it", async () => {
    await start("guard");
    const client = await ask(of, clean);
    await done(of, client);
    expect(inspected).toHaveLength(1);
    expect(JSON.stringify(inspected[0])).toContain(PLAIN);
    await until(() => settles().length === 1);
    expect(await refusal(ask(of, clean, { text: SECRET }))).toMatch(/no_secrets|Not this/);
    // Nothing was reserved, and the provider did not receive the text.
    expect(gateway.storeCommands.filter((row) => row.do === "reserve")).toHaveLength(1);
  });

  it("is shown to `watch` as it is sent, and stopped by it", async () => {
    await start("guard");
    await done(of, await ask(of, clean));
    expect(watched.join("").trim()).toBe(WORDS);
    speak(UNSAFE);
    const client = await ask(of, clean);
    expect(await refusal(Promise.resolve(client))).toMatch(/unsafe|Stopped/);
    expect(textIn(of, client)).not.toContain("say");
    await until(() => settles().length === 2 && records.length === 2);
    expect(records[1]).toMatchObject({ fault: { code: "unsafe" } });
  });

  it("is changed by `event`, or rejected with the reason if its messages must pass unchanged", async () => {
    await start("mask");
    if (of.frontend === "responses") {
      const client = await ask(of, clean);
      await done(of, client);
      expect(textIn(of, client)).toBe(WORDS.toUpperCase());
    } else expect(await refusal(ask(of, clean))).toMatch(/mask \(event\)|No provider/);
  });

  it("is reported to observers, the access log, traces, and metrics", async () => {
    await start("guard");
    const before = collector.requests.length;
    const client = await ask(of, clean);
    await done(of, client);
    await until(
      () => records.length === 1,
      () => JSON.stringify(records),
    );
    const [record] = records;
    expect(record).toMatchObject({
      frontend: of.frontend,
      session: expect.stringMatching(/./),
      outcome: "ok",
      labels: { topic: "gate" },
      calls: [{ provider: clean, state: expect.stringMatching(/exact|unpriced/) }],
    });
    const line = () =>
      readFileSync(`${folder}/access.log`, "utf8")
        .split("\n")
        .find((one) => one.includes(record!.id));
    await until(
      () => line() !== undefined,
      () => readFileSync(`${folder}/access.log`, "utf8"),
    );
    expect(JSON.parse(line()!)).toMatchObject({ frontend: of.frontend, session: record!.session });
    const spans = () =>
      collector.requests
        .slice(before)
        .flatMap(itemsOf)
        .filter(({ traceId }) => traceId === record!.trace.traceId);
    const own = () =>
      spans().find((span) => attributesOf(span)["tollgate.request.id"] === record!.id);
    await until(() => own() !== undefined);
    expect(attributesOf(own()!)["tollgate.session.id"]).toBe(record!.session);
    await until(() => spans().some(({ parentSpanId }) => parentSpanId === own()!["spanId"]));
    const scrape = async () =>
      (
        await fetch(`${gateway.adminUrl}/metrics`, {
          headers: { authorization: `Bearer ${SCRAPER}` },
        })
      ).text();
    let text = "";
    const label = `frontend="${of.frontend}"`;
    await until(
      async () =>
        sumSamples((text = await scrape()), "tollgate_requests_total", label) === 2 &&
        sumSamples(text, "tollgate_websockets", label) === 1,
      () => text,
    );
  });
});
