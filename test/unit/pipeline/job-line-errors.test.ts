// Errors of the gateway while it processes lines of a job, such as those of a stop, an abort, a
// timeout, or a lost lease. A line either ends with one bill, or it has none and is processed again.
import { afterAll, beforeAll, expect, it } from "vitest";
import {
  createFault,
  fail,
  defineFrontend,
  defineMiddleware,
  defineStore,
  type BatchResult,
  type Context,
  type ErrorKind,
  type LedgerEntry,
  type LineSettlement,
  type PlannedLine,
  type Store,
  type StoreCommand,
} from "tollgate/plugin";
import { startGateway, type StartedGateway } from "tollgate/testing";
import memory from "../../../plugins/stores/memory.ts";
import { ERRORS } from "../../../src/model/error.ts";
import provider, { answerLine, usageOf } from "../../kit/batch-provider.ts";

const KINDS = Object.keys(ERRORS) as ErrorKind[];
/** Errors of a busy gateway, or of an operation that was ended. */
const TEMPORARY = ["overloaded", "unavailable", "timeout", "rate_limited", "canceled"];
/** Errors of the gateway's own code. They can be an effect of a stop. */
const STOP = ["internal", "canceled", "timeout", "upstream"];
/** Where an error occurs: before the line has a row, and after it. */
const PLACES = ["edit", "rewrite", "event"] as const;
type Place = (typeof PLACES)[number];

const JOB = "batch_one";
const PATH = "/v1/chat/completions";
const BODY = JSON.stringify({
  model: "fake/small",
  max_tokens: 64,
  messages: [{ role: "user", content: "Hello" }],
});

let gateway: StartedGateway;
let ctx: Context;
let planned: PlannedLine;
/** Throws the current error of the middleware. */
let failAt: (place: Place) => void = () => {};
/** Whether the store refuses a command. */
let isRefused: (command: StoreCommand) => boolean = () => false;
/** IDs of the requests that settle hooks have received. */
const settledRequests: string[] = [];
let lines = 0;

const frontend = defineFrontend({
  api: 1,
  name: "lab",
  summary: "Reserves a job",
  setup(_, given) {
    ctx = given;
    return {
      routes: [
        {
          method: "POST",
          path: "/lab/jobs",
          async handle(x) {
            const line = { path: PATH, body: Buffer.from(BODY) };
            const of = { parentRequest: x, preferred: [] };
            planned = await given.jobLines!.planLine(line, of);
            const { target, claims } = planned;
            const job = { attempt: JOB, target, claims, holdNano: 10n ** 12n };
            await given.jobLines!.reserveJob(job, of);
            return { status: 200, body: {} };
          },
        },
      ],
    };
  },
});

const faulty = defineMiddleware({
  api: 1,
  name: "faulty",
  summary: "Fails on demand",
  sends: "nowhere",
  setup: () => ({
    edit: () => void failAt("edit"),
    rewrite(request) {
      failAt("rewrite");
      return request;
    },
    event: (_, next) => (event) => {
      failAt("event");
      next(event);
    },
    settle: ({ id }) => void settledRequests.push(id),
  }),
});

const refusing = defineStore({
  api: 1,
  name: "refusing",
  summary: "Refuses commands on demand",
  isVolatile: true,
  async setup(_, given) {
    const store: Store = await memory.setup({ keep: 200_000 }, given as never);
    return new Proxy(store, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name);
        if (name === "apply")
          return async (batch: readonly StoreCommand[]) =>
            batch.some(isRefused) ? fail("invalid", "Refused.") : target.apply(batch);
        return typeof value === "function" ? (value.bind(target) as unknown) : value;
      },
    });
  },
});

beforeAll(async () => {
  gateway = await startGateway({
    config: `frontends: [chat-completions, lab]
providers: { fake: { use: fake, with: { api_key: k } } }
middleware: [door, faulty]
store: refusing`,
    plugins: { lab: frontend, faulty, fake: provider, refusing },
  });
  const created = await fetch(`${gateway.url}/lab/jobs`, { method: "POST" });
  expect(created.status, await created.text()).toBe(200);
});
afterAll(() => gateway?.[Symbol.asyncDispose]());

/** Lets the middleware fail at this place with this kind of error. */
function failWith(place: Place, kind: ErrorKind): void {
  failAt = (at) => {
    if (at === place) throw kind === "internal" ? new TypeError("x") : createFault(kind, "Failed.");
  };
}

function stopFailing(): void {
  failAt = () => {};
}

const RESULT: BatchResult = {
  ...answerLine({ id: "1", body: BODY }),
  body: { ...(answerLine({ id: "1", body: BODY }).body as object), model: "small" },
};

const termsOf = (line: number, more: Partial<LineSettlement>): LineSettlement => ({
  attempt: JOB,
  line,
  target: planned.target,
  key: "tester",
  labels: {},
  holdNano: planned.holdNano,
  pricedAt: Date.now(),
  price: planned.price,
  ...more,
});

const settle = (line: number, more: Partial<LineSettlement> = {}, result = RESULT) =>
  ctx.jobLines!.settleLine({ path: PATH, body: Buffer.from(BODY) }, result, termsOf(line, more));

async function billsOf(line: number): Promise<readonly LedgerEntry[]> {
  const { items } = await ctx.ledger.listEntries({ attempt: `${JOB}.${line}.1` }, { limit: 9 });
  return items.filter(({ kind }) => kind !== "reserve");
}

const { prompt_tokens, completion_tokens } = usageOf(BODY);
const EXACT = {
  state: "exact",
  usage: { input: prompt_tokens, output: completion_tokens },
  costNano: BigInt(prompt_tokens) * 1_000n + BigInt(completion_tokens) * 4_000n,
};

/** Runs each kind of error at each place. */
const ALL = PLACES.flatMap((place) => KINDS.map((kind) => ({ place, kind })));

it("a result that cannot be processed now has no bill, and is billed exactly later", async () => {
  const wrong: string[] = [];
  for (const { place, kind } of ALL)
    for (const isStopping of [false, true]) {
      const line = ++lines;
      const name = `${kind} at ${place}${isStopping ? " during a stop" : ""}`;
      const stopping = isStopping ? AbortSignal.abort() : undefined;
      failWith(place, kind);
      const first = await settle(line, { stopping }).catch((error: unknown) => error as Error);
      const isRepeated = isStopping || TEMPORARY.includes(kind);
      const before = await billsOf(line);
      if (isRepeated !== first instanceof Error) wrong.push(`${name}: ${JSON.stringify(first)}`);
      if (before.length !== (isRepeated ? 0 : 1)) wrong.push(`${name}: ${before.length} bills`);
      if (!isRepeated && before[0]?.state !== "estimated") wrong.push(`${name}: not estimated`);
      stopFailing();
      const second = await settle(line);
      const after = await billsOf(line);
      if (second.status !== 200) wrong.push(`${name}: ${second.status} later`);
      if (after.length !== 1) wrong.push(`${name}: ${after.length} bills later`);
      if (isRepeated) expect(after[0], name).toMatchObject(EXACT);
      else expect(after, name).toEqual(before);
    }
  expect(wrong).toEqual([]);
});

it("a result of which no attempt is left is billed once, as an estimate", async () => {
  for (const { place, kind } of ALL) {
    const line = ++lines;
    failWith(place, kind);
    if (TEMPORARY.includes(kind)) await expect(settle(line), kind).rejects.toThrow();
    const { status } = await settle(line, { isLastAttempt: true });
    stopFailing();
    expect(status, kind).toBeGreaterThanOrEqual(400);
    expect(await billsOf(line), `${kind} at ${place}`).toMatchObject([{ state: "estimated" }]);
  }
});

it("an error that the provider returned is final, also during a stop", async () => {
  for (const status of [400, 401, 408, 409, 413, 429, 499, 500, 502, 503, 504, 529]) {
    const line = ++lines;
    const body = { error: { message: "no", type: "x" } };
    const stopping = AbortSignal.abort();
    const response = await settle(line, { stopping }, { ...RESULT, status, body });
    expect(response.status).toBeGreaterThanOrEqual(400);
    expect(await billsOf(line), `${status}`).toMatchObject([{ state: "void", costNano: 0n }]);
  }
});

it("settle hooks run once for a line, when its bill is durable", async () => {
  const line = ++lines;
  const attempt = `${JOB}.${line}.1`;
  isRefused = (command) => command.do === "settle" && command.attempt === attempt;
  const count = () => settledRequests.filter((id) => id === `${JOB}.${line}`).length;
  try {
    await expect(settle(line)).rejects.toThrow("Refused.");
    expect(count()).toBe(0);
  } finally {
    isRefused = () => false;
  }
  expect((await settle(line)).status).toBe(200);
  expect(count()).toBe(1);
  expect(await billsOf(line)).toMatchObject([EXACT]);
});

it("a result that cannot be decoded is billed as an estimate", async () => {
  const line = ++lines;
  const response = await settle(line, {}, { ...RESULT, body: { nothing: true } });
  expect(response.status).toBe(502);
  expect(await billsOf(line)).toMatchObject([{ state: "estimated" }]);
});

it("a direct line is repeated after an error of a stop, if nobody has billed it", async () => {
  const direct = { ...planned.target, path: "", headers: {}, isDirect: true };
  for (const place of ["edit", "rewrite"] as const)
    for (const kind of KINDS)
      for (const isStopping of [false, true]) {
        const line = ++lines;
        failWith(place, kind);
        const sent = await ctx
          .jobLines!.runLine(
            { path: PATH, body: Buffer.from(BODY) },
            {
              ...termsOf(line, isStopping ? { stopping: AbortSignal.abort() } : {}),
              target: direct,
              turn: 1,
              signal: new AbortController().signal,
            },
          )
          .catch((error: unknown) => error as Error);
        stopFailing();
        const isRepeated =
          ["overloaded", "unavailable", "rate_limited"].includes(kind) ||
          (isStopping && STOP.includes(kind));
        const name = `${kind} at ${place}${isStopping ? " during a stop" : ""}`;
        expect(sent instanceof Error, name).toBe(isRepeated);
        expect(await billsOf(line), name).toEqual([]);
      }
});
