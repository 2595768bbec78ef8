// A failing provider, called directly and through the real gateway, with the same requests at the
// same times. The gateway must not be worse: neither for failures of an outage, nor for requests of
// another key. Prints both, and draws the goodput curve.
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { startFleet } from "../../kit/database/fleet.ts";
import { createDatabase, startPostgres } from "../../kit/database/postgres.ts";
import { curve, type Point } from "./goodput-curve.ts";
import type { Rig, RigResult } from "../rig.ts";
import { createSeededRandom } from "../../../src/testing/random.ts";

interface Stream {
  readonly key: "first" | "second";
  readonly rate: number;
}

interface Row {
  readonly name: string;
  readonly streams: readonly Stream[];
  /** Keys whose success rate is checked. */
  readonly judged: Stream["key"];
  /** The provider's response. Undefined: it succeeds. */
  fails(of: Call): Failure | undefined;
}

interface Call {
  readonly key: Stream["key"];
  /**
   * Time since the beginning. The first call of a request has the time at which the request was
   * due, so a busy machine does not change its result. Repeated calls are later.
   */
  readonly ms: number;
  /** 0 to 1, for this request alone. */
  readonly luck: number;
}

interface Failure {
  readonly status: number;
  readonly message: string;
}

const BUSY: Failure = { status: 529, message: "Overloaded." };

export const failingShare = (p: number): Row => ({
  name: `fails ${Math.round(p * 100)} % with 529`,
  streams: [{ key: "first", rate: 20 }],
  judged: "first",
  fails: ({ luck }) => (luck < p ? BUSY : undefined),
});

export const ROWS: readonly Row[] = [
  failingShare(0.5),
  {
    name: "fails for 1.5 s of every 5 s",
    streams: [{ key: "first", rate: 20 }],
    judged: "first",
    fails: ({ ms }) => (ms % 5_000 < 1_500 ? BUSY : undefined),
  },
  {
    name: "answers 500 to one key; another key",
    streams: [
      { key: "first", rate: 10 },
      { key: "second", rate: 5 },
    ],
    judged: "second",
    fails: ({ key }) => (key === "first" ? { status: 500, message: "It broke." } : undefined),
  },
  {
    name: "answers 429 too large to one key; another key",
    streams: [
      { key: "first", rate: 2 },
      { key: "second", rate: 20 },
    ],
    judged: "second",
    fails: ({ key }) =>
      key === "first"
        ? { status: 429, message: "Request too large for m: Limit 10000, Requested 12000." }
        : undefined,
  },
];

export interface Share {
  readonly asked: number;
  readonly good: number;
  /** Errors of the gateway itself: no call was made. */
  readonly refused: number;
  /** Number of each error, by status and code. */
  readonly errors?: Readonly<Record<string, number>>;
}

const shareOf = ({ good, asked }: Share): number => good / asked;

const LOST = 0.01;
const CALLS = 1.1;
/** Retry budget of each key in each process. */
const SAVED = 12;

export interface NeverWorseOptions {
  readonly seconds: number;
  readonly seed: number;
  readonly rows: readonly Row[];
  /** Another checkout of the program. */
  readonly root?: string | undefined;
  /** Processes of one gateway. */
  readonly workers?: number;
  /** More than one: a fleet on PostgreSQL, whose gateways receive requests in turn. */
  readonly gateways?: number;
}

export interface RowResult {
  readonly row: Row;
  readonly direct: Share;
  readonly through: Share;
  readonly calls: number;
  readonly requests: number;
  readonly processes: number;
}

/** Violations of one row. */
export function judge(of: RowResult): string[] {
  const { row, direct, through, calls, requests, processes } = of;
  const wrong: string[] = [];
  if (shareOf(through) < shareOf(direct) - LOST)
    wrong.push(
      `${row.name}: ${through.good} of ${through.asked} succeed, and ${direct.good} of ${direct.asked} directly`,
    );
  if (calls > CALLS * requests + SAVED * processes)
    wrong.push(`${row.name}: ${calls} calls for ${requests} requests`);
  // The limit on concurrent calls may reject a few in a long burst.
  if (through.refused > LOST * through.asked)
    wrong.push(`${row.name}: ${through.refused} were refused without a call`);
  return wrong;
}

/** All rows in parallel: each has its own provider and gateway, and mostly waits. */
export async function played(of: NeverWorseOptions): Promise<RowResult[]> {
  await using database = (of.gateways ?? 1) > 1 ? await startPostgres({}) : undefined;
  const started = await Promise.all(of.rows.map((row) => begun(row, of, database?.url)));
  try {
    return await Promise.all(started.map((one) => one.run()));
  } finally {
    await Promise.all(started.map((one) => one.end()));
  }
}

const yamlOf = (up: string, workers: number) => `
workers: ${workers}
# A busy machine is not the subject.
overload: { max_queue_wait: 60s }
frontends: [chat-completions, messages, responses, gemini]
middleware: [auth, limits, usage]
providers:
  up: { use: openai-compatible, with: { base_url: "${up}/gateway/v1", api_key: k } }
`;

/** The gateways of one row. */
async function gateways(up: string, of: NeverWorseOptions, database: string | undefined) {
  const { workers = 1, gateways: nodes = 1, root } = of;
  const yaml = yamlOf(up, workers);
  if (database === undefined) {
    const daemon = await startDaemon({ root, yaml: `store: memory\n${yaml}` });
    return {
      daemon,
      key: daemon.key,
      urls: [daemon.url],
      end: () => daemon[Symbol.asyncDispose](),
    };
  }
  const fleet = await startFleet({ url: await createDatabase(database), nodes, yaml });
  return {
    daemon: fleet.any(),
    key: fleet.key,
    urls: fleet.nodes.map(({ daemon }) => daemon!.url),
    end: () => fleet[Symbol.asyncDispose](),
  };
}

async function begun(row: Row, of: NeverWorseOptions, database: string | undefined) {
  const { seconds, seed, workers = 1 } = of;
  const up = await provider(row);
  const { daemon, key, urls, end } = await gateways(up.url, of, database);
  const second = await anotherKey(daemon);
  const keys = { first: key, second };
  let n = 0;
  return {
    async end() {
      await end();
      up.close();
    },
    async run(): Promise<RowResult> {
      up.begin();
      const counts = { direct: new Map<string, Share>(), through: new Map<string, Share>() };
      const asked: Promise<void>[] = [];
      await Promise.all(
        row.streams.map(async ({ key, rate }, i) => {
          const luck = createSeededRandom(seed + i);
          const began = performance.now();
          for (let at = 0; at < seconds * 1_000; at += 1_000 / rate) {
            await sleep(Math.max(0, began + at - performance.now()));
            const drawn = luck();
            const [form, url] = [FORMS[n % FORMS.length]!, urls[n % urls.length]!];
            n++;
            const send = async (way: keyof typeof counts, form: Form, url: string) => {
              const error = await sent(url, form, keys[key], { key, luck: drawn, ms: at });
              const was = counts[way].get(key) ?? { asked: 0, good: 0, refused: 0 };
              counts[way].set(key, {
                asked: was.asked + 1,
                good: was.good + Number(error === undefined),
                refused: was.refused + Number(REFUSED.test(error ?? "")),
                errors: error
                  ? { ...was.errors, [error]: (was.errors?.[error] ?? 0) + 1 }
                  : (was.errors ?? {}),
              });
            };
            asked.push(send("direct", CHAT, `${up.url}/direct`), send("through", form, url));
          }
        }),
      );
      await Promise.all(asked);
      const requests = [...counts.through.values()].reduce((sum, one) => sum + one.asked, 0);
      return {
        row,
        direct: counts.direct.get(row.judged)!,
        through: counts.through.get(row.judged)!,
        calls: up.calls(),
        requests,
        processes: workers * urls.length,
      };
    },
  };
}

async function anotherKey(daemon: Daemon): Promise<string> {
  const made = (await daemon.ask("keys.create", { name: "second" })) as unknown as {
    secret: string;
  };
  return made.secret;
}

/** How a client sends a request: its path, body, and headers. */
type Form = (
  content: string,
  key: string,
) => readonly [path: string, body: object, headers: object];

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const messagesOf = (content: string) => [{ role: "user", content }];

const CHAT: Form = (content, key) => [
  "/v1/chat/completions",
  { model: "up/m", messages: messagesOf(content) },
  bearer(key),
];

/** Every protocol, streaming and non-streaming, in turn. */
const FORMS: readonly Form[] = [false, true].flatMap((stream): Form[] => [
  (content, key) => [
    "/v1/chat/completions",
    { model: "up/m", stream, messages: messagesOf(content) },
    bearer(key),
  ],
  (content, key) => [
    "/v1/messages",
    { model: "up/m", stream, max_tokens: 9, messages: messagesOf(content) },
    { "x-api-key": key },
  ],
  (content, key) => ["/v1/responses", { model: "up/m", stream, input: content }, bearer(key)],
  (content, key) => [
    `/v1beta/models/up/m:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
    { contents: [{ role: "user", parts: [{ text: content }] }] },
    { "x-goog-api-key": key },
  ],
]);

const REFUSED = /no_healthy_upstream|resting|rate_limit_exceeded/;

/** Sends one request. Returns the status and code of its error, and undefined if it succeeded. */
async function sent(url: string, form: Form, key: string, of: Call): Promise<string | undefined> {
  const [path, body, headers] = form(`${of.key} ${of.luck} ${of.ms}`, key);
  const res = await fetch(url + path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  const text = await res.text();
  if (res.status === 200 && /"(stop|STOP|end_turn|completed)"/.test(text)) return undefined;
  const code = /"(?:code|error_code)":"(\w+)"/.exec(text)?.[1] ?? "";
  return `${res.status} ${code}`.trim();
}

async function provider(row: Row) {
  let calls = 0;
  /** First call of each request. A repeated call has its own random number and time. */
  const seen = new Map<string, { times: number; readonly at: number }>();
  const server = createServer((req, res) => {
    if (req.method !== "POST") return void res.writeHead(404).end();
    const parts: Buffer[] = [];
    req.on("data", (part: Buffer) => parts.push(part));
    return void req.on("end", () => {
      const through = req.url!.startsWith("/gateway/");
      if (through) calls++;
      const body = Buffer.concat(parts).toString();
      const [key, said, due] = /"(first|second) ([\d.e-]+) ([\d.e-]+)"/.exec(body)!.slice(1) as [
        Stream["key"],
        string,
        string,
      ];
      const call = `${through} ${key} ${said}`;
      const first = seen.get(call) ?? { times: 0, at: performance.now() };
      seen.set(call, first);
      const luck = (Number(said) + first.times++ * 0.618) % 1;
      const ms = Number(due) + performance.now() - first.at;
      const failure = row.fails({ key, luck, ms });
      answered(res, failure, body.includes('"stream":true'));
    });
  });
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls: () => calls,
    begin: () => void (calls = 0),
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

const USAGE = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
const HEAD = { id: "c1", created: 1, model: "m" };
const GOOD = JSON.stringify({
  ...HEAD,
  object: "chat.completion",
  choices: [{ index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }],
  usage: USAGE,
});
const CHUNK = JSON.stringify({
  ...HEAD,
  object: "chat.completion.chunk",
  choices: [{ index: 0, delta: { role: "assistant", content: "Hello" }, finish_reason: "stop" }],
  usage: USAGE,
});

function answered(res: ServerResponse, failure: Failure | undefined, stream: boolean): void {
  const type = stream && !failure ? "text/event-stream" : "application/json";
  res.writeHead(failure?.status ?? 200, { "content-type": type });
  const error = { message: failure?.message, type: "server_error", code: null };
  if (failure) res.end(JSON.stringify({ error }));
  else res.end(stream ? `data: ${CHUNK}\n\ndata: [DONE]\n\n` : GOOD);
}

const percent = (of: Share): string => `${(100 * shareOf(of)).toFixed(1)} %`;

export const lineOf = ({ row, direct, through, calls, requests }: RowResult): string =>
  `${row.name}: direct ${percent(direct)}, through Tollgate ${percent(through)}; ${calls} calls for ${requests} requests, ${through.refused} refused${errorsOf(through)}`;

const errorsOf = ({ errors = {} }: Share): string =>
  Object.entries(errors)
    .map(([error, times]) => `; ${times} × ${error}`)
    .join("");

const STEPS = 10;

/** The curve of one checkout: the share of successful requests by the share of failing calls. */
async function points(of: Omit<NeverWorseOptions, "rows">): Promise<Point[]> {
  const rows = Array.from({ length: STEPS + 1 }, (_, i) => failingShare(i / STEPS));
  const all: RowResult[] = [];
  // Few at a time, because each has a gateway process.
  for (let i = 0; i < rows.length; i += 4)
    all.push(...(await played({ ...of, rows: rows.slice(i, i + 4) })));
  return all.map(({ direct, through }, i) => ({
    p: i / STEPS,
    direct: shareOf(direct),
    through: shareOf(through),
  }));
}

export const rig: Rig = {
  options: { seconds: 30, seed: 7, workers: 1, gateways: 1, svg: "", before: "" },
  async run({ seconds, seed, workers, gateways: nodes, svg, before }, say): Promise<RigResult> {
    const of = {
      seconds: Number(seconds),
      seed: Number(seed),
      workers: Number(workers),
      gateways: Number(nodes),
    };
    const results = await played({ ...of, rows: ROWS });
    for (const one of results) say(lineOf(one));
    if (svg) {
      const earlier = before ? await points({ ...of, root: before }) : undefined;
      await writeFile(svg!, curve(await points(of), earlier));
    }
    const wrong = results.flatMap(judge);
    return {
      wrong,
      counts: { rows: results.length, processes: of.workers * of.gateways, seconds: of.seconds },
      seed: of.seed,
    };
  },
};
