// Generated responses that a provider runs in the background, on virtual time: two gateways share a
// store and a folder, are killed at any moment and replaced, and the provider refuses, fails, loses
// answers, and forgets responses. Each reservation ends once, and nothing is billed twice.
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import {
  fail,
  getFault,
  type BackgroundStatus,
  type BatchClient,
  type Context,
  type JobLines,
  type LineResponse,
  type PlannedBackground,
  type RequestHead,
} from "tollgate/plugin";
import { createTestContext, type TestContext } from "tollgate/testing";
import { ProviderResponseEngine } from "../../../plugins/frontends/background/provider-response-engine.ts";
import {
  isOpen,
  parseProviderResponse,
  ProviderResponseRecords,
} from "../../../plugins/frontends/background/provider-response-record.ts";
import { ProviderResponseService } from "../../../plugins/frontends/background/provider-response-service.ts";
import { ResponseFiles } from "../../../plugins/frontends/background/response-files.ts";
import { ResponseRecords } from "../../../plugins/frontends/background/response-record.ts";
import { ResponseStreams } from "../../../plugins/frontends/background/response-streams.ts";
import { createMemoryJobs } from "../../../src/store/job-table.ts";
import { NIGHTLY } from "../../kit/law-effort.ts";
import { turnEventLoop } from "../../kit/wait.ts";

const pause = setTimeout;
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const HOLD = 12_000n;
/** Time after which an engine ends a creation, with a margin. */
const SUSPENDED_MS = 11 * 60_000;
/** Step of the time while a response is created, so that the time does not outrun the disk. */
const CREATION_STEP_MS = 1_000;
const KIND = "provider_response";

/** What the provider and the client do with one response. */
interface Script {
  readonly creation:
    | "accepted"
    | "refused"
    | "unsent"
    | "lost_request"
    | "lost_response"
    | "killed";
  /** Whether the store fails after the provider's answer, and whether the write was stored. */
  readonly storeFault: "none" | "not_stored" | "stored";
  /** What happens while the provider creates the response. `suspended`: the process is suspended. */
  readonly meanwhile: "nothing" | "canceled" | "suspended";
  /** Failed polls before the response ends. */
  readonly failures: number;
  readonly end: "completed" | "incomplete" | "failed" | "failed_with_usage" | "forgotten";
  /** Whether the provider forgets the response when it was read once. */
  readonly isReadOnce: boolean;
  /**
   * Whether billing fails once, and whether the row was written then. `stays_open`: the call was
   * only reserved.
   */
  readonly billing: "ok" | "fails_before" | "fails_after" | "stays_open";
  readonly tokens: number;
  /** Step of the world at which the client cancels or deletes the response. */
  readonly request: readonly [what: "cancel" | "delete", step: number] | undefined;
  /** Whether the client's key is revoked when the response was started. */
  readonly isRevoked: boolean;
  readonly killAfter: number | undefined;
}

const script: fc.Arbitrary<Script> = fc.record({
  creation: fc.constantFrom(
    "accepted",
    "accepted",
    "accepted",
    "accepted",
    "refused",
    "unsent",
    "lost_request",
    "lost_response",
    "killed",
  ),
  storeFault: fc.constantFrom("none", "none", "not_stored", "stored"),
  meanwhile: fc.constantFrom("nothing", "nothing", "nothing", "canceled", "suspended"),
  failures: fc.nat(4),
  end: fc.constantFrom(
    "completed",
    "completed",
    "incomplete",
    "failed",
    "failed_with_usage",
    "forgotten",
  ),
  isReadOnce: fc.boolean(),
  billing: fc.constantFrom("ok", "ok", "fails_before", "fails_after", "stays_open"),
  tokens: fc.integer({ min: 1, max: 9_000 }),
  request: fc.option(fc.tuple(fc.constantFrom("cancel", "delete"), fc.nat(12)), {
    nil: undefined,
    freq: 4,
  }),
  isRevoked: fc.constantFrom(false, false, false, true),
  killAfter: fc.option(fc.nat(40), { nil: undefined }),
});

beforeEach(() => {
  vi.useFakeTimers({
    toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date"],
  });
});
afterEach(() => void vi.useRealTimers());

it("each response is billed once, by what its provider reported", () =>
  fc.assert(
    fc.asyncProperty(fc.array(script, { minLength: 1, maxLength: 6 }), async (scripts) => {
      const dir = await mkdtemp(join(tmpdir(), "tollgate-provided-"));
      const world = new World(scripts, dir);
      try {
        await world.run();
      } finally {
        await world.end();
        await rm(dir, { recursive: true, force: true });
      }
    }),
    { numRuns: NIGHTLY ? 400 : 15, endOnFailure: true },
  ));

/** State of a response at the provider. */
interface Started {
  polls: number;
  isCanceled: boolean;
  isForgotten: boolean;
  isDeleted: boolean;
}

class World {
  readonly #scripts: readonly Script[];
  readonly #dir: string;
  readonly #jobs = createMemoryJobs();
  /** Responses at the provider, by the number of their script. */
  readonly #started = new Map<string, Started>();
  readonly #reserved = new Set<string>();
  /** First end of each job's own call, and of each line, as a ledger keeps it. */
  readonly #jobRows = new Map<string, bigint>();
  readonly #lineRows = new Map<string, bigint>();
  readonly #failedBilling = new Set<string>();
  /** Calls of lines that are reserved and not billed. */
  readonly #openLines = new Set<string>();
  readonly #contexts: TestContext[] = [];
  #storeFault: Script["storeFault"] = "none";
  /** A gateway that is not killed. */
  #operator: Gateway | undefined;

  constructor(scripts: readonly Script[], dir: string) {
    this.#scripts = scripts;
    this.#dir = dir;
  }

  async run(): Promise<void> {
    const other = (this.#operator = this.#start());
    let gateway = this.#start();
    const attempts = new Map<number, string>();
    const ids = new Map<number, string>();
    for (const [n, { creation, isRevoked, meanwhile }] of this.#scripts.entries()) {
      const before = new Set(this.#reserved);
      let outcome: string | undefined;
      const creating = gateway.service
        .start(headOf(isRevoked ? "revoked" : "valid"), { model: "m", input: "Hi" }, planned(n))
        .then(
          (answer) => {
            outcome = answer ? "accepted" : "refused";
            if (answer) ids.set(n, (answer.body as { readonly id: string }).id);
          },
          (error: unknown) => void (outcome = getFault(error)?.code ?? "killed"),
        );
      await this.#until(async () => outcome !== undefined || gateway.isDead(), CREATION_STEP_MS);
      await Promise.race([creating, turnEventLoop(1)]);
      if (gateway.isDead()) gateway = this.#start();
      if (creation === "refused" || creation === "unsent") expect(outcome).toBe("refused");
      if (creation === "lost_request" || creation === "lost_response")
        expect(outcome).toBe("background_start_unknown");
      if (creation === "accepted")
        expect(outcome).toBe(meanwhile === "suspended" ? "background_start_unknown" : "accepted");
      for (const attempt of this.#reserved) if (!before.has(attempt)) attempts.set(n, attempt);
    }
    await this.#runToEnd(gateway, other, ids);
    expect(this.#openLines).toEqual(new Set());
    expect([...this.#jobRows.keys()].toSorted()).toEqual([...this.#reserved].toSorted());
    for (const [n, attempt] of attempts) this.#check(n, attempt);
    for (const [n, id] of ids) await this.#checkRead(other, n, id, attempts.get(n)!);
  }

  async #runToEnd(first: Gateway, other: Gateway, ids: ReadonlyMap<number, string>): Promise<void> {
    let gateway = first;
    const kills = this.#scripts.flatMap(({ killAfter }) => killAfter ?? []);
    let steps = 0;
    await this.#until(async () => {
      steps++;
      for (const [n, id] of ids) {
        const { request } = this.#scripts[n]!;
        const found = request?.[1] === steps ? await other.service.find(HEAD, id) : undefined;
        if (!found) continue;
        if (request![0] === "delete") await other.service.delete(found);
        else if (isOpen(found.state)) await other.service.requestCancellation(found);
      }
      if (kills.includes(steps)) {
        gateway.kill();
        gateway = this.#start();
      }
      const { items } = await this.#jobs.list({ kind: KIND }, { limit: 1_000 });
      const all = items.map(parseProviderResponse);
      return steps > 41 && all.every(({ state, isDeleted }) => !isOpen(state) && !isDeleted);
    });
  }

  #check(n: number, attempt: string): void {
    const { creation, end, tokens, request, isReadOnce, isRevoked, meanwhile, billing } =
      this.#scripts[n]!;
    const job = this.#jobRows.get(attempt)!;
    const line = this.#lineRows.get(`${attempt}.1.1`);
    // One of the two is billed.
    if (line !== undefined) {
      expect(job).toBe(0n);
      // A call that was only reserved is billed as an estimate if its result cannot be read again.
      if (billing !== "stays_open" || line !== HOLD) expect(line).toBe(BigInt(tokens));
      return;
    }
    if (creation === "refused" || creation === "unsent") return expect(job).toBe(0n);
    if (creation !== "accepted" || meanwhile === "suspended") return expect(job).toBe(HOLD);
    if (meanwhile === "canceled") return expect([0n, HOLD]).toContain(job);
    if (end === "failed" && request === undefined && !isReadOnce && !isRevoked)
      return expect(job).toBe(0n);
    if (end === "failed") return expect([0n, HOLD]).toContain(job);
    return expect(job).toBe(HOLD);
  }

  async #checkRead(gateway: Gateway, n: number, id: string, attempt: string): Promise<void> {
    const { request, isRevoked, meanwhile } = this.#scripts[n]!;
    const found = await gateway.service.find(HEAD, id);
    if (request?.[0] === "delete" && !found) {
      const files = await readdir(join(this.#dir, "responses"));
      return expect(files).not.toContain(id.slice("resp_".length));
    }
    const { body } = await gateway.service.read(HEAD, found!);
    const { status, output } = body as { status: string; output: readonly unknown[] };
    expect(status).not.toBe("in_progress");
    if (isRevoked && request === undefined && meanwhile === "nothing")
      expect(status).toBe("failed");
    if (status !== "completed" && status !== "incomplete") return undefined;
    expect(output).toEqual([{ type: "message", id: `m${n}` }]);
    return expect(this.#lineRows.has(`${attempt}.1.1`)).toBe(true);
  }

  /** Cancels the response that is being created, as an operator does, and lets engines act on it. */
  async #cancelSubmitted(): Promise<void> {
    const { items } = await this.#jobs.list({ kind: KIND }, { limit: 1_000 });
    const found = items.map(parseProviderResponse).find(({ state }) => state === "submitting");
    await this.#operator!.service.requestCancellation(found!);
    await sleep(5_000);
  }

  /** Runs timers until a fact holds: the next timer, or those of some milliseconds at a time. */
  async #until(fact: () => Promise<boolean>, stepMs?: number): Promise<void> {
    for (let steps = 0; !(await fact()); steps++) {
      if (steps > 8_000) throw new Error("It has not come to pass.");
      if (stepMs === undefined) await vi.advanceTimersToNextTimerAsync();
      else await vi.advanceTimersByTimeAsync(stepMs);
      await turnEventLoop(3);
      await new Promise((resolve) => pause(resolve, 0));
    }
  }

  async end(): Promise<void> {
    for (const one of this.#contexts) await one.end();
  }

  #start(): Gateway {
    const test = createTestContext();
    this.#contexts.push(test);
    let isDead = false;
    const live: Live = async (run) => {
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
    const ledger = {
      listEntries: async ({ attempt }: { attempt?: string }) => ({
        items: [
          ...(this.#openLines.has(attempt!) ? [{ kind: "reserve", costNano: null }] : []),
          ...[this.#lineRows.get(attempt!) ?? []]
            .flat()
            .map((costNano) => ({ kind: "settle", costNano })),
        ],
      }),
    } as unknown as Context["ledger"];
    const keys = {
      ...test.ctx.keys,
      read: async () => ({}) as never,
      findByDigest: (digest: string) => (digest === "valid" ? ({} as never) : undefined),
    };
    const jobLines = this.#jobLines(live, kill);
    const ctx: Context = { ...test.ctx, jobs, ledger, keys, jobLines };
    const files = new ResponseFiles(ctx, this.#dir);
    const records = new ProviderResponseRecords(() => ctx.jobs!);
    const engine = new ProviderResponseEngine(ctx, { records, files, keepMs: 40 * 24 * 3_600_000 });
    engine.start();
    const service = new ProviderResponseService(ctx, {
      files,
      records,
      allRecords: new ResponseRecords(() => ctx.jobs!),
      streams: new ResponseStreams(),
      maxResponses: 100,
      wake: engine.wake,
    });
    return { service, kill, isDead: () => isDead };
  }

  #jobLines(live: Live, kill: () => void): JobLines {
    const unused = () => fail("internal", "Not used.");
    return {
      planLine: unused,
      runLine: unused,
      openBatches: unused,
      reserveJob: ({ attempt }) => live(() => void this.#reserved.add(attempt)),
      settleJob: (attempt, { costNano }) =>
        live(() => {
          if (this.#openLines.delete(attempt)) return void this.#lineRows.set(attempt, costNano);
          if (!this.#reserved.has(attempt))
            fail("invalid", "No such call.", { code: "unknown_attempt" });
          if (!this.#jobRows.has(attempt)) this.#jobRows.set(attempt, costNano);
        }),
      settleLine: (line, { body }, { attempt, stopping }) =>
        live((): LineResponse => {
          expect(stopping).toBeInstanceOf(AbortSignal);
          const n = Number(JSON.parse(line.body.toString()).input);
          const { billing } = this.#scripts[n]!;
          const isFailing = billing !== "ok" && !this.#failedBilling.has(attempt);
          if (isFailing) this.#failedBilling.add(attempt);
          if (isFailing && billing === "fails_before") fail("unavailable", "Busy.");
          const response = body as { usage: { cost: number }; status: string };
          const costNano = BigInt(response.usage.cost);
          // The reservation must be open when the call is reserved.
          if (!this.#lineRows.has(`${attempt}.1.1`)) expect(this.#jobRows.has(attempt)).toBe(false);
          if (isFailing && billing === "stays_open") {
            this.#openLines.add(`${attempt}.1.1`);
            fail("unavailable", "Busy.");
          }
          this.#openLines.delete(`${attempt}.1.1`);
          if (!this.#lineRows.has(`${attempt}.1.1`)) this.#lineRows.set(`${attempt}.1.1`, costNano);
          if (isFailing) fail("unavailable", "Busy.");
          const call = { costNano } as LineResponse["call"];
          const requestId = `${attempt}.1`;
          return response.status === "failed"
            ? { requestId, status: 502, body: '{"error":{"message":"No."}}', call }
            : { requestId, status: 200, body: JSON.stringify(body), call };
        }),
      openBackground: () => ({ client: CLIENT, background: this.#background(live, kill) }),
    };
  }

  #background(live: Live, kill: () => void) {
    const find = (reference: string): Started => {
      const started = this.#started.get(reference)!;
      return started.isForgotten ? fail("not_found", "No such response.") : started;
    };
    return {
      create: ({ body }: { readonly body: string }, client: BatchClient) =>
        live(async () => {
          const reference = String(JSON.parse(body).input);
          const { creation, storeFault, meanwhile } = this.#scripts[Number(reference)]!;
          if (meanwhile === "canceled") await this.#cancelSubmitted();
          const { ok } = await client.fetch(creation);
          if (!ok) fail("upstream", "The provider returned status 500.");
          if (creation === "lost_request") fail("timeout", "No answer.");
          const started = { polls: 0, isCanceled: false, isForgotten: false, isDeleted: false };
          this.#started.set(reference, started);
          if (creation === "lost_response") fail("upstream", "The connection broke.");
          if (creation === "killed") kill();
          if (meanwhile === "suspended") {
            vi.setSystemTime(Date.now() + SUSPENDED_MS);
            await sleep(61_000);
          }
          this.#storeFault = creation === "accepted" ? storeFault : "none";
          return reference;
        }),
      poll: (reference: string) =>
        live((): BackgroundStatus => {
          const { failures, end, tokens, isReadOnce } = this.#scripts[Number(reference)]!;
          const started = find(reference);
          started.polls++;
          if (started.polls <= failures) fail("unavailable", "Busy.");
          if (started.isCanceled) return { state: "canceled", hasUsage: false };
          if (started.polls <= failures + 2) return { state: "running" };
          if (isReadOnce || end === "forgotten") started.isForgotten = true;
          if (end === "forgotten") fail("not_found", "No such response.");
          if (end === "failed") return { state: "failed", hasUsage: false, message: "No." };
          const status = end === "failed_with_usage" ? "failed" : end;
          const output = [{ type: "message", id: `m${reference}` }];
          const response = { id: "theirs", status, output, usage: { cost: tokens } };
          return { state: status === "failed" ? "failed" : "completed", response };
        }),
      cancel: (reference: string) =>
        live(() => {
          const { failures } = this.#scripts[Number(reference)]!;
          const started = find(reference);
          // A response that has ended cannot be canceled.
          if (started.polls < failures + 2) started.isCanceled = true;
        }),
      delete: (reference: string) => live(() => void (find(reference).isDeleted = true)),
    };
  }
}

interface Gateway {
  readonly service: ProviderResponseService;
  kill(): void;
  isDead(): boolean;
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

const headOf = (digest: string): RequestHead =>
  ({
    id: "r1",
    identity: { id: "alice", digest },
    signal: new AbortController().signal,
    query: new URLSearchParams(),
  }) as unknown as RequestHead;
const HEAD = headOf("valid");

const planned = (n: number): PlannedBackground => {
  const body = JSON.stringify({ model: "m", input: String(n) });
  return {
    target: {
      provider: "fake",
      model: "m",
      credential: "default",
      protocol: "responses",
      mode: "passthrough",
      path: "/responses",
      headers: {},
      isBackground: true,
    },
    body,
    line: { path: "/v1/responses", body: Buffer.from(body) },
    claims: [],
    holdNano: HOLD,
    pricedAt: Date.now(),
    account: undefined,
    labels: {},
  };
};
