// Responses with a number of some item, in both modes, streaming and non-streaming.
import { type ModelEvent, type Protocol, type Settle, type UsageReport } from "tollgate/plugin";
import { BOUNDS } from "../../../src/lib/bounds.ts";
import { imageOperation } from "../../../src/model/operations/image-operation.ts";
import { BufferedBytes } from "../../../src/pipeline/response/buffered-bytes.ts";
import {
  startBackend,
  startTestServices,
  type TestServicesOptions,
} from "../../kit/test-services.ts";
import { until } from "../../kit/wait.ts";
import { chats, LEAST } from "../../protocols/generators/codecs.ts";
import { createToyProtocol } from "../toy-protocol.ts";
import { faultIn, type Driver, type Outcome, type Way } from "./way.ts";

const SSE = { "content-type": "text/event-stream" };
const JSON_TYPE = { "content-type": "application/json" };
const usage = { input: 3, output: 2 };

export interface Lane {
  readonly verbatim: boolean;
  readonly stream: boolean;
}
export const LANES: { readonly [name: string]: Lane } = {
  "verbatim, streamed": { verbatim: true, stream: true },
  "verbatim, whole": { verbatim: true, stream: false },
  "translated, streamed": { verbatim: false, stream: true },
  "translated, whole": { verbatim: false, stream: false },
};
const TRANSLATED = Object.entries(LANES).filter(([, { verbatim }]) => !verbatim);

/** A protocol whose responses have these events, whatever their bytes are. */
function meaning(events: () => Iterable<ModelEvent>, verbatim: boolean): Protocol<"chat"> {
  const base = createToyProtocol(verbatim ? "toy" : "other", { relay: verbatim });
  const client = base.client!;
  const said = (emit: (event: ModelEvent) => void) => {
    for (const event of events()) emit(event);
  };
  return {
    ...base,
    client: {
      ...client,
      decodeResponse: (_body, emit) => said(emit),
      createDecoder: (emit) => ({ push: () => said(emit), end() {} }),
      ...(verbatim && {
        createPassthrough: (sink, to) => ({
          push() {
            for (const event of events())
              if (event.type === "start") sink.reportStart(event.id ?? "");
              else if (event.type === "usage") sink.reportUsage(event);
              else if (event.type === "finish") {
                sink.write(Buffer.from('{"end":"stop"}\n'));
                sink.reportFinish(event.reason);
              } else sink.reportContent(1);
          },
          end() {},
          writeFault: client.createPassthrough!(sink, to, {}).writeFault,
          isBetweenEvents: true,
        }),
      }),
    },
  };
}

/** Result of a response that is valid except for an excess of some item. */
async function heard(
  provider: TestServicesOptions["providers"][string],
  { stream }: Pick<Lane, "stream">,
  of: Partial<TestServicesOptions> & { ask?: object } = {},
): Promise<{ outcome: Outcome; settles: Settle[] }> {
  const frontend = of.frontend ?? createToyProtocol();
  await using s = await startTestServices({ frontend, providers: { p: provider }, ...of });
  const got = await s.ask({ model: "p/m", stream, ...(of.ask ?? { text: "Hi" }) });
  const text = await got.text();
  const settles = s.journal.filter((c) => c.do === "settle") as Settle[];
  // However it ended, nothing of it stays in memory.
  await until(() => s.house.memoryBudget.usedBytes === 0);
  const outcome = settles[0]?.outcome;
  if (settles.length > 1) throw new Error("It was billed twice.");
  if (got.status === 200 && outcome === "ok") return { outcome: "passes", settles };
  return {
    outcome: { status: got.status, text, to: frontend as never, ...(outcome && { outcome }) },
    settles,
  };
}

const one = (protocol: Protocol<any>, base: string, more: object = {}) => ({
  endpoints: [{ protocol, base, auth: "none" as const, ...more }],
});

async function scripted(events: () => Iterable<ModelEvent>, lane: Lane) {
  await using up = await startBackend((_req, res) => {
    res.writeHead(200, lane.stream ? SSE : JSON_TYPE).end("x\n");
  });
  return await heard(one(meaning(events, lane.verbatim), up.base), lane);
}

const START: ModelEvent = { type: "start", id: "u" };
const WORDS: readonly ModelEvent[] = [
  { type: "open", index: 0, block: { type: "text" } },
  { type: "delta", index: 0, text: "Hello" },
  { type: "close", index: 0 },
];
const END: readonly ModelEvent[] = [
  { type: "usage", usage },
  { type: "finish", reason: "stop" },
];
/** Some of them, with the events of every response around them: this many in total. */
function* events(n: number): Generator<ModelEvent> {
  yield START;
  yield* WORDS;
  // The same object again, which is counted nevertheless.
  const more: ModelEvent = { type: "close", index: 0 };
  for (let i = 6; i < n; i++) yield more;
  yield* END;
}
function* blocks(n: number): Generator<ModelEvent> {
  yield START;
  for (let index = 0; index < n; index++) {
    yield { type: "open", index, block: { type: "text" } };
    yield { type: "delta", index, text: "a" };
    yield { type: "close", index };
  }
  yield* END;
}
function* reports(n: number): Generator<ModelEvent> {
  yield START;
  yield* WORDS;
  for (let i = 0; i < n; i++) yield { type: "usage", usage, model: `m${i}` } as UsageReport;
  yield { type: "finish", reason: "stop" };
}

const onLanes = (
  lanes: readonly (readonly [string, Lane])[],
  drive: (n: number, lane: Lane) => Promise<Outcome>,
  more: Partial<Way> = {},
): Driver =>
  Object.fromEntries(
    lanes.map(([name, lane]) => [name, { drive: (n: number) => drive(n, lane), ...more }]),
  );

const LINE = { id: "u", say: "", usage, end: "stop" };
const said = (of: object): string => `${JSON.stringify(of)}\n`;
/** A response of this many bytes: one line of the smallest protocol. */
const line = (n: number): string => said({ ...LINE, say: "x".repeat(n - said(LINE).length) });
/** A response of this many characters. In translated mode, nothing else of it is kept. */
function* words(n: number): Generator<string> {
  for (let left = n; left > 0; left -= 100_000)
    yield said({ say: "x".repeat(Math.min(left, 100_000)) });
  yield said(LINE);
}
/** This many of the items that a mode keeps. */
async function long(n: number, lane: Lane, of: Partial<TestServicesOptions>, work: object = {}) {
  const text = lane.stream && !lane.verbatim ? [...words(n)].join("") : line(n);
  await using up = await startBackend((_req, res) => {
    res.writeHead(200, lane.stream ? SSE : JSON_TYPE).end(text);
  });
  const kind = (p: Protocol<"chat">) => ({ ...p, operationSpec: { ...p.operationSpec, ...work } });
  const protocol = kind(
    lane.verbatim ? createToyProtocol() : createToyProtocol("other", { relay: false }),
  );
  const { outcome } = await heard(one(protocol, up.base), lane, {
    frontend: kind(createToyProtocol()),
    ...of,
  });
  return outcome;
}
const LONG = 3_000_000;
/** Of a response of which only numbers are kept. */
function held(n: number, work: object): Promise<Outcome> {
  const exchange = {
    operationSpec: work,
    state: { gen: { maxResponseBytes: 1 }, admission: { permit: { reserveMemory() {} } } },
  };
  return faultIn(() => new BufferedBytes({ exchange } as never).add(n));
}

/** An upstream's error of this many bytes, as far as its codec reads it. */
async function refusal(n: number, again: boolean): Promise<Outcome> {
  let asked = 0;
  const sizes: number[] = [];
  await using up = await startBackend((_req, res) => {
    asked++;
    res.writeHead(401, JSON_TYPE).end(Buffer.alloc(n, " "));
  });
  const protocol = createToyProtocol();
  protocol.client!.decodeFault = (_status, _headers, body) => {
    sizes.push(body.length);
    return { kind: "invalid", message: "No." };
  };
  const auth = {
    sign: () => ({}),
    renewToken: async ({ body }: { body: Buffer }) => {
      sizes.push(body.length);
      return again;
    },
  };
  await heard({ endpoints: [{ protocol, base: up.base, auth }] } as never, { stream: false });
  if (asked !== (again ? 2 : 1) || sizes.length !== 2) throw new Error(`${asked} ${sizes}`);
  if (sizes.every((size) => size === n)) return "passes";
  return sizes.every((size) => size === BOUNDS.errorBody.max) ? "beyond" : { fault: undefined };
}

const event = (more: object) =>
  `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [], ...more })}\n\n`;
const SAID =
  event({ choices: [{ index: 0, delta: { content: "Hello" } }] }) +
  event({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }) +
  event({ usage: { prompt_tokens: 1, completion_tokens: 1 } }) +
  "data: [DONE]\n\n";

/** A stream that starts with these bytes, for a client of another protocol or of the same one. */
const begun = (from: string, stream: boolean, begin: (n: number) => string): Way => ({
  async drive(n) {
    await using up = await startBackend((_req, res) => {
      res.writeHead(200, SSE).end(begin(n) + SAID);
    });
    const provider = one(chats["chat-completions"]!, up.base, { streaming: "always" });
    const of = { frontend: chats[from]!, ask: LEAST[from]! };
    return (await heard(provider, { stream }, of)).outcome;
  },
});
const streamed = (begin: (n: number) => string): Driver =>
  Object.fromEntries(
    Object.keys(chats).flatMap((from) => [
      [`to ${from}, streamed`, begun(from, true, begin)],
      [`to ${from}, whole`, begun(from, false, begin)],
    ]),
  );
/** Lines, none of which is too long. */
function lines(n: number): string {
  const full = `:${"x".repeat(500_000)}\n`;
  const many = Math.floor((n - 10) / full.length);
  return `${full.repeat(many)}:${"x".repeat(n - many * full.length - 3)}\n\n`;
}

export const answers = {
  response: {
    ...onLanes(
      Object.entries(LANES),
      (n, lane) => long(n, lane, { bounds: { responseBytes: LONG } }),
      { most: LONG },
    ),
  },
  imageResponse: {
    ...onLanes(Object.entries(LANES), (n, lane) => long(n, lane, {}, { maxResponseBytes: LONG }), {
      most: LONG,
    }),
    "as large as pictures are": { drive: (n) => held(n, imageOperation) },
  },
  events: onLanes(TRANSLATED, async (n, lane) => (await scripted(() => events(n), lane)).outcome),
  blocks: onLanes(TRANSLATED, async (n, lane) => (await scripted(() => blocks(n), lane)).outcome),
  usageReports: onLanes(
    Object.entries(LANES),
    async (n, lane) => (await scripted(() => reports(n), lane)).outcome,
  ),
  responseId: onLanes(Object.entries(LANES), async (n, lane) => {
    const id = "u".repeat(n);
    const { outcome, settles } = await scripted(
      () => [{ type: "start", id }, ...WORDS, ...END],
      lane,
    );
    if (outcome !== "passes") return outcome;
    return settles[0]!.upstreamId === id
      ? "passes"
      : settles[0]!.upstreamId === undefined
        ? "beyond"
        : { fault: undefined };
  }),
  errorBody: {
    "at once": { drive: (n) => refusal(n, false) },
    "after another token": { drive: (n) => refusal(n, true) },
  },
  line: Object.fromEntries(
    // In passthrough mode lines are not parsed, so the limit applies to the event.
    Object.entries(streamed((n) => `:${"x".repeat(n - 1)}\n\n`)).filter(
      ([name]) => !name.includes("chat-completions"),
    ),
  ),
  event: streamed(lines),
} satisfies { readonly [name: string]: Driver };
