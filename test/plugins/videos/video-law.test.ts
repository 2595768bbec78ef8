// Generated videos on virtual time: gateways are killed at any moment and replaced, and the provider
// fails, loses answers, and forgets videos. Each reservation ends once, and the rows sum to what the
// provider reported.
import fc from "fast-check";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import {
  fail,
  type BatchClient,
  type Context,
  type JobCalls,
  type PlannedCall,
  type Price,
  type RequestHead,
  type VideoRequest,
  type VideoStatus,
} from "tollgate/plugin";
import { createTestContext, type TestContext } from "tollgate/testing";
import { VideoEngine } from "../../../plugins/frontends/videos/video-engine.ts";
import {
  isOpen,
  parseVideo,
  VideoRecords,
} from "../../../plugins/frontends/videos/video-record.ts";
import { VideoService } from "../../../plugins/frontends/videos/video-service.ts";
import type { Owner } from "../../../plugins/frontends/jobs/owned-records.ts";
import { settleJobCall } from "../../../src/pipeline/job-calls.ts";
import type { Generation } from "../../../src/pipeline/generation.ts";
import { createMemoryJobs } from "../../../src/store/job-table.ts";
import { NIGHTLY } from "../../kit/law-effort.ts";
import { turnEventLoop } from "../../kit/wait.ts";

const HOUR_MS = 3_600_000;
const HOLD = 12_000_000_000n;
const RATES = { "1280x720": "0.1", "1920x1080": "0.35" } as const;
const PRICE: Price = {
  lines: Object.entries(RATES).map(([size, usd]) => ({
    unit: "seconds_out",
    usd,
    per: 1,
    variant: { size },
  })),
};

/** What the provider does with one video. */
interface Script {
  readonly creation:
    | "accepted"
    | "rejected"
    | "unsent"
    | "refused"
    | "lost_request"
    | "lost_response"
    | "killed";
  /** Whether the store fails after the provider's answer, and whether the write was stored. */
  readonly storeFault: "none" | "not_stored" | "stored";
  /** Failed polls before the video ends. */
  readonly failures: number;
  readonly end: "completed" | "failed" | "forgotten";
  readonly seconds: number;
  readonly size: keyof typeof RATES;
  /** Steps of the world before a gateway is killed. */
  readonly killAfter: number | undefined;
}

const script: fc.Arbitrary<Script> = fc.record({
  creation: fc.constantFrom(
    "accepted",
    "accepted",
    "accepted",
    "rejected",
    "unsent",
    "refused",
    "lost_request",
    "lost_response",
    "killed",
  ),
  storeFault: fc.constantFrom("none", "none", "not_stored", "stored"),
  failures: fc.nat(4),
  end: fc.constantFrom("completed", "completed", "failed", "forgotten"),
  seconds: fc.integer({ min: 1, max: 20 }),
  size: fc.constantFrom(...(Object.keys(RATES) as (keyof typeof RATES)[])),
  killAfter: fc.option(fc.nat(40), { nil: undefined }),
});

beforeEach(() => {
  vi.useFakeTimers({
    toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date"],
  });
});
afterEach(() => void vi.useRealTimers());

it("each video is billed once, by what its provider reported", () =>
  fc.assert(
    fc.asyncProperty(fc.array(script, { minLength: 1, maxLength: 8 }), async (scripts) => {
      const world = new World(scripts);
      try {
        await world.run();
      } finally {
        await world.end();
      }
    }),
    { numRuns: NIGHTLY ? 400 : 25, endOnFailure: true },
  ));

class World {
  readonly #scripts: readonly Script[];
  readonly #jobs = createMemoryJobs();
  /** Polls of each video at the provider. A video that is not here was not started. */
  readonly #started = new Map<string, number>();
  readonly #reserved = new Set<string>();
  /** First settlement of each call, as a ledger keeps it. */
  readonly #rows = new Map<string, { state: string; costNano: bigint | null; outcome: string }>();
  readonly #contexts: TestContext[] = [];
  /** Fault of the next write. */
  #storeFault: Script["storeFault"] = "none";

  constructor(scripts: readonly Script[]) {
    this.#scripts = scripts;
  }

  async run(): Promise<void> {
    let gateway = this.#start();
    const attempts = new Map<number, string>();
    for (const [n] of this.#scripts.entries()) {
      const before = new Set(this.#reserved);
      const creating = gateway.service.create(OWNER, HEAD, requestOf(n)).catch(() => undefined);
      await this.#until(async () => (await isSettled(creating)) || gateway.isDead());
      if (gateway.isDead()) gateway = this.#start();
      for (const attempt of this.#reserved) if (!before.has(attempt)) attempts.set(n, attempt);
    }
    const kills = this.#scripts.flatMap(({ killAfter }) => killAfter ?? []);
    let steps = 0;
    await this.#until(async () => {
      steps++;
      if (kills.includes(steps)) {
        gateway.kill();
        gateway = this.#start();
      }
      const { items } = await this.#jobs.list({ kind: "video" }, { limit: 1_000 });
      return steps > 41 && items.every((record) => !isOpen(parseVideo(record).state));
    });
    expect([...this.#rows.keys()].toSorted()).toEqual([...this.#reserved].toSorted());
    for (const [n, attempt] of attempts) this.#check(this.#scripts[n]!, this.#rows.get(attempt)!);
    gateway.kill();
  }

  #check({ creation, end, seconds, size }: Script, row: unknown): void {
    if (["rejected", "unsent", "refused"].includes(creation))
      return expect(row).toMatchObject({ state: "void", costNano: 0n });
    if (creation !== "accepted")
      return expect(row).toMatchObject({ state: "estimated", costNano: HOLD, outcome: "lost" });
    if (end === "failed")
      return expect(row).toEqual({ state: "void", costNano: 0n, outcome: "failed" });
    if (end === "completed") {
      const costNano = BigInt(seconds) * BigInt(Math.round(Number(RATES[size]) * 1e9));
      return expect(row).toEqual({ state: "exact", costNano, outcome: "ok" });
    }
    return expect(row).toEqual({ state: "estimated", costNano: HOLD, outcome: "deleted" });
  }

  /** Runs timers until a fact holds. */
  async #until(fact: () => Promise<boolean>): Promise<void> {
    for (let steps = 0; !(await fact()); steps++) {
      if (steps > 5_000) throw new Error("It has not come to pass.");
      await vi.advanceTimersToNextTimerAsync();
      await turnEventLoop(3);
    }
  }

  async end(): Promise<void> {
    for (const one of this.#contexts) await one.end();
  }

  #start() {
    const test = createTestContext();
    this.#contexts.push(test);
    let isDead = false;
    const live = async <T>(run: () => T | Promise<T>): Promise<T> => {
      if (isDead) throw new Error("This process was killed.");
      const result = await run();
      if (isDead) throw new Error("This process was killed.");
      return result;
    };
    const jobs = new Proxy(this.#jobs, {
      get: (of, name) => {
        const method = Reflect.get(of, name) as (...args: unknown[]) => Promise<unknown>;
        return (...args: unknown[]) =>
          live(async () => {
            const fault = name === "put" ? this.#storeFault : "none";
            this.#storeFault = "none";
            const result = fault === "not_stored" ? undefined : await method.apply(of, args);
            return fault === "none" ? result : fail("unavailable", "The store is away.");
          });
      },
    });
    const kill = () => void (isDead = true);
    const ctx: Context = { ...test.ctx, jobs, jobCalls: this.#jobCalls(live, kill) };
    const records = new VideoRecords(() => ctx.jobs!);
    const engine = new VideoEngine(ctx, records, 1_000 * HOUR_MS);
    engine.start();
    return {
      service: new VideoService(ctx, records, engine.wake),
      kill,
      isDead: () => isDead,
    };
  }

  #jobCalls(live: Live, kill: () => void): JobCalls {
    const ledger = {
      settle: async ({ attempt, state, costNano, outcome }: never) => {
        if (!this.#reserved.has(attempt))
          fail("invalid", "No such call.", { code: "unknown_attempt" });
        if (!this.#rows.has(attempt)) this.#rows.set(attempt, { state, costNano, outcome });
      },
    };
    return {
      planCall: async (request): Promise<PlannedCall> => ({
        target: { provider: "fake", model: request.model, credential: "default" },
        request,
        claims: [],
        holdNano: HOLD,
        price: PRICE,
        pricedAt: Date.now(),
        labels: {},
      }),
      reserveCall: (attempt) => live(() => void this.#reserved.add(attempt)),
      settleCall: (attempt, end) =>
        live(() => settleJobCall({ ledger } as unknown as Generation, attempt, end)),
      openVideos: () => ({ client: CLIENT, videos: this.#videos(live, kill) }),
    };
  }

  #videos(live: Live, kill: () => void) {
    const scriptOf = (reference: string) => this.#scripts[Number(reference)]!;
    return {
      create: ({ request }: { request: VideoRequest }, client: BatchClient) =>
        live(async () => {
          const reference = request.prompt;
          const { creation, storeFault } = scriptOf(reference);
          if (creation === "rejected") fail("invalid", "Bad prompt.");
          const { ok } = await client.fetch(creation);
          if (!ok) fail("upstream", "The provider returned status 500.");
          if (creation === "lost_request") fail("timeout", "No answer.");
          this.#started.set(reference, 0);
          if (creation === "lost_response") fail("upstream", "The connection broke.");
          if (creation === "killed") kill();
          this.#storeFault = creation === "accepted" ? storeFault : "none";
          return { reference, status: { state: "queued" } as VideoStatus };
        }),
      poll: (reference: string) =>
        live((): VideoStatus => {
          const { failures, end, seconds, size } = scriptOf(reference);
          const polls = this.#started.get(reference)! + 1;
          this.#started.set(reference, polls);
          if (polls <= failures) fail("unavailable", "Busy.");
          if (end === "forgotten") fail("not_found", "No such video.");
          return end === "failed"
            ? { state: "failed", error: { code: "blocked", message: "No." } }
            : { state: "completed", seconds, size };
        }),
      readContent: () => fail("internal", "Not used."),
    };
  }
}

/** Runs a step of a process, which fails if the process is killed. */
type Live = <T>(run: () => T | Promise<T>) => Promise<T>;

/** Sends each request as its script says. */
const CLIENT: BatchClient = {
  credential: "default",
  signal: new AbortController().signal,
  fetch: async (creation) =>
    creation === "unsent"
      ? fail("upstream", "Cannot connect.", { code: "connect_failed" })
      : new Response(null, { status: creation === "refused" ? 500 : 200 }),
};

const OWNER: Owner = { name: "key:alice", key: "alice", account: undefined };
const HEAD = { id: "r1", identity: { id: "alice" } } as unknown as RequestHead;
const requestOf = (n: number): VideoRequest => ({
  operation: "video",
  model: "fake/film",
  stream: false,
  prompt: String(n),
  rest: {},
  ext: {},
});

const PENDING = Symbol("pending");
const isSettled = async (promise: Promise<unknown>): Promise<boolean> =>
  (await Promise.race([promise, Promise.resolve(PENDING)])) !== PENDING;
