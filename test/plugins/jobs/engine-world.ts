// Batch engines on virtual time, over a store in memory and a provider whose every answer a test
// decides. Each world has any number of gateways, which can be killed.
import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { vi } from "vitest";
import {
  fail,
  type BatchResult,
  type BatchStatus,
  type BatchTarget,
  type CallRecord,
  type Context,
  type EndpointBatches,
  type JobLines,
  type LineBilling,
  type Opt,
  type Price,
  type RequestHead,
} from "tollgate/plugin";
import { createTestContext, type TestContext } from "tollgate/testing";
import { BatchEngine } from "../../../plugins/frontends/jobs/batch-engine.ts";
import { BatchRecords, type StoredBatch } from "../../../plugins/frontends/jobs/batch-record.ts";
import { BatchService } from "../../../plugins/frontends/jobs/batch-service.ts";
import type { LinePace } from "../../../plugins/frontends/jobs/line-pace.ts";
import { Storage } from "../../../plugins/frontends/jobs/storage.ts";
import type { Owner } from "../../../plugins/frontends/jobs/owned-records.ts";
import { createMemoryJobs } from "../../../src/store/job-table.ts";
import { turnEventLoop } from "../../kit/wait.ts";

const pause = setTimeout;
const DAY_MS = 24 * 3_600_000;
const LIMITS = { fileBytes: 2 ** 30, ownerBytes: 2 ** 34, batchMs: 30 * DAY_MS };

/** A batch at the provider. */
export interface SentBatch {
  readonly key: string;
  readonly lines: readonly { readonly id: string; readonly body: string }[];
  isCanceled: boolean;
}

/** What the provider does. A test replaces members. */
export interface Behavior {
  /** Called before a method of the provider and before a line is billed. It may throw. */
  before(method: string): void | Promise<void>;
  /** Called when the provider has received a batch. If it throws, the response is lost. */
  afterSubmit(): void;
  status(batch: SentBatch): BatchStatus;
  results(batch: SentBatch): Iterable<BatchResult>;
  reference(key: string): string;
  price: Opt<Price>;
  /** Called when a direct line was sent. The line is answered when it resolves. */
  answerDirect(line: number): void | Promise<void>;
  /** Whether the gateway refuses a direct line before it writes a row. */
  isBusy(): boolean;
  /** Called before a method of the store of jobs. It may throw. */
  beforeStore(): void;
}

export const answer = (id: string): BatchResult => ({
  id,
  outcome: "answered",
  status: 200,
  body: { ok: true },
});

/** Usage that the provider reports for a direct line. */
export const directUsage = (line: number) => ({ input: 10 + line, output: line % 7 });
/** Cost of a direct line, in nano-dollars. */
export const directCost = (line: number): bigint => BigInt(directUsage(line).input);

/** Amount reserved for a line, in nano-dollars. */
export const LINE_HOLD = 1_000n;
/** Cost of a line that was billed. */
export const LINE_COST = 300n;

export class EngineWorld {
  readonly jobs = createMemoryJobs();
  readonly sent = new Map<string, SentBatch>();
  /** How often each line was billed, by its call. */
  readonly bills = new Map<string, LineBilling[]>();
  /** How often each direct line was sent, by its job and its number. */
  readonly directCalls = new Map<string, number>();
  /** Cost of the rows of direct lines, by their calls. */
  readonly directRows = new Map<string, bigint>();
  /** Requests of direct lines that have a row, in their order. A second row would bill nothing. */
  readonly directRequests: string[] = [];
  /** Headers that the last direct line was sent with. */
  directHeaders: BatchTarget["headers"] | undefined;
  /** Calls of lines that were left open until their results are processed again. */
  readonly openCalls = new Set<string>();
  /** Reservations of jobs, and how they ended. Calls that were left open may end like them. */
  readonly reserved = new Map<string, bigint>();
  readonly settled = new Map<string, { readonly costNano: bigint; readonly outcome: string }>();
  readonly behavior: Behavior = {
    before() {},
    afterSubmit() {},
    status: ({ isCanceled }) => ({
      state: "ended",
      outcome: isCanceled ? "canceled" : "completed",
    }),
    results: ({ lines }) => lines.map(({ id }) => answer(id)),
    reference: (key) => key,
    price: undefined,
    answerDirect() {},
    isBusy: () => false,
    beforeStore() {},
  };
  readonly dir: string;
  readonly #contexts: TestContext[] = [];

  private constructor(dir: string) {
    this.dir = dir;
  }

  static async create(): Promise<EngineWorld> {
    return new EngineWorld(await mkdtemp(join(tmpdir(), "tollgate-engine-")));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const one of this.#contexts) await one.end();
    await rm(this.dir, { recursive: true, force: true });
  }

  /** Starts a gateway on the store and the folder of the world. */
  start(limits: Partial<typeof LIMITS> = {}, pace?: LinePace): Gateway {
    const gateway = new Gateway(this, { ...LIMITS, ...limits }, pace);
    this.#contexts.push(gateway.context);
    return gateway;
  }

  /** Runs timers until a fact holds. Time passes as fast as the gateways work. */
  async until(fact: () => Promise<boolean> | boolean): Promise<void> {
    for (let steps = 0; !(await fact()); steps++) {
      if (steps > 20_000) throw new Error("It has not come to pass.");
      await vi.advanceTimersToNextTimerAsync();
      await turnEventLoop(5);
      await new Promise((resolve) => pause(resolve, 1));
    }
  }
}

/** A process of a gateway. */
export class Gateway {
  readonly context: TestContext;
  readonly records: BatchRecords;
  readonly service: BatchService;
  readonly storage: Storage;
  readonly #world: EngineWorld;
  #isDead = false;

  constructor(world: EngineWorld, limits: typeof LIMITS, pace: LinePace | undefined) {
    this.#world = world;
    const { jobs, bills } = world;
    this.context = createTestContext({
      stateDir: world.dir,
      ledger: {
        listEntries: async ({ attempt }: { attempt?: Opt<string> }) => {
          const [bill] = bills.get(attempt!) ?? [];
          const isLeftOpen = world.openCalls.has(attempt!);
          const costNano = bill
            ? LINE_COST
            : (world.directRows.get(attempt!) ??
              (isLeftOpen ? world.settled.get(attempt!)?.costNano : undefined));
          if (costNano === undefined && !isLeftOpen) return { items: [] };
          const target = bill?.target ?? targetOf(isLeftOpen ? "m" : "direct");
          const settle = { attempt, kind: "settle", state: "exact", costNano, target };
          return {
            items: [
              {
                attempt,
                kind: "reserve",
                state: "open",
                costNano: null,
                holdNano: LINE_HOLD,
                target,
              },
              ...(costNano === undefined ? [] : [settle]),
            ],
          };
        },
      } as unknown as Context["ledger"],
    });
    const ctx: Context = {
      ...this.context.ctx,
      jobs: mapMethods(jobs, async (run) => {
        this.#requireAlive();
        world.behavior.beforeStore();
        return run();
      }),
      jobLines: this.#jobLines(),
    };
    this.storage = new Storage(ctx, limits, world.dir);
    this.records = new BatchRecords(() => ctx.jobs!);
    const engine = new BatchEngine(this.storage, this.records, pace);
    this.service = new BatchService(this.storage, this.records, engine.wake, pace !== undefined);
    engine.start();
  }

  /** Stops the process: from now on, nothing that it does has an effect. */
  kill(): void {
    this.#isDead = true;
  }

  #requireAlive(): void {
    if (this.#isDead) throw new Error("This process was killed.");
  }

  /** Creates a batch with lines for some models. */
  create(
    owner: Owner,
    models: readonly string[],
    more: { readonly metadata?: Record<string, string> } = {},
  ): Promise<StoredBatch> {
    return this.service.create(owner, headOf(owner), {
      format: "openai",
      path: "/v1/chat/completions",
      keepMs: 30 * DAY_MS,
      ...more,
      async readLines(planner) {
        for (const [n, model] of models.entries()) {
          planner.registerId(`c${n}`);
          await planner.add(n + 1, `c${n}`, Buffer.from(JSON.stringify({ model, n })));
        }
        return [];
      },
      model: () => models[0],
    });
  }

  #jobLines(): JobLines {
    const world = this.#world;
    const { behavior } = world;
    const live = async <T>(run: () => T | Promise<T>): Promise<T> => {
      this.#requireAlive();
      return run();
    };
    return {
      planLine: async ({ body }) => ({
        target: targetOf((JSON.parse(body.toString()) as { model: string }).model),
        body: body.toString(),
        claims: [],
        holdNano: LINE_HOLD,
        account: undefined,
        labels: {},
        ...(behavior.price && { price: behavior.price }),
      }),
      runLine: (_line, { attempt, line, turn, target, signal }) =>
        live(async () => {
          if (behavior.isBusy()) return undefined;
          const requestId = `${attempt}.${line}${turn > 1 ? `-${turn}` : ""}`;
          world.directRequests.push(requestId);
          world.directHeaders = target.headers;
          await behavior.before("runLine");
          this.#requireAlive();
          const name = `${attempt}.${line}`;
          world.directCalls.set(name, (world.directCalls.get(name) ?? 0) + 1);
          const costNano = directCost(line);
          world.directRows.set(`${requestId}.1`, costNano);
          await behavior.answerDirect(line);
          this.#requireAlive();
          if (signal.aborted) fail("canceled", "The request was canceled.");
          const call = { usage: directUsage(line) } as CallRecord;
          return { requestId, status: 200, body: JSON.stringify({ line }), call, costNano };
        }),
      reserveJob: ({ attempt, holdNano }) =>
        live(() => void world.reserved.set(attempt, holdNano ?? 0n)),
      settleJob: (attempt, of) => live(() => void world.settled.set(attempt, of)),
      settleLine: (_line, _result, of) =>
        live(async () => {
          await behavior.before("settleLine");
          const call = `${of.attempt}.${of.line}.1`;
          world.bills.set(call, [...(world.bills.get(call) ?? []), of]);
          const requestId = call;
          const record = { usage: {}, costNano: LINE_COST } as CallRecord;
          return { requestId, status: 200, body: "{}", call: record };
        }),
      openBackground: () => undefined,
      openBatches: () => ({
        batches: mapMethods(this.#provider(), (run) => live(run)),
        client: undefined as never,
      }),
    };
  }

  #provider(): EndpointBatches {
    const { sent, behavior } = this.#world;
    const batchOf = (reference: string) => sent.get(reference) ?? fail("not_found", "Gone.");
    const requireAlive = () => this.#requireAlive();
    return {
      limits: { lines: 50_000, bytes: 2 ** 30 },
      async submit({ key, lines }) {
        await behavior.before("submit");
        const all: { id: string; body: string }[] = [];
        for await (const line of lines()) all.push(line);
        requireAlive();
        const reference = behavior.reference(`${key}.${sent.size}`);
        sent.set(reference, { key, lines: all, isCanceled: false });
        behavior.afterSubmit();
        return reference;
      },
      async find(key) {
        await behavior.before("find");
        return [...sent].find(([, one]) => one.key === key)?.[0];
      },
      async poll(reference) {
        await behavior.before("poll");
        return behavior.status(batchOf(reference));
      },
      async *readResults(reference) {
        await behavior.before("readResults");
        for (const result of behavior.results(batchOf(reference))) {
          requireAlive();
          yield result;
        }
      },
      async cancel(reference) {
        await behavior.before("cancel");
        batchOf(reference).isCanceled = true;
      },
    };
  }
}

export const ownerNamed = (name: string): Owner => ({
  name: `key:${name}`,
  key: name,
  account: undefined,
});

const headOf = ({ key }: Owner): RequestHead =>
  ({ identity: { id: key }, signal: new AbortController().signal }) as unknown as RequestHead;

const targetOf = (model: string): BatchTarget => ({
  provider: "fake",
  model,
  credential: "default",
  protocol: "chat-completions",
  mode: "passthrough",
  path: "/chat/completions",
  headers: { "x-beta": "b".repeat(100) },
  ...(model.startsWith("direct") && { isDirect: true }),
});

/** Returns an object whose promises are those that `call` returns. */
function mapMethods<T extends object>(
  of: T,
  call: (run: () => Promise<never>) => Promise<never>,
): T {
  return new Proxy(of, {
    get(target, name) {
      const value = Reflect.get(target, name) as unknown;
      if (typeof value !== "function" || name === "readResults") return value;
      return (...args: unknown[]) => call(async () => (await value.apply(target, args)) as never);
    },
  });
}

export const randomText = (bytes: number): string =>
  randomBytes(bytes).toString("hex").slice(0, bytes);
