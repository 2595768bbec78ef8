// Requests through the real route and dispatch stages, with simulated upstreams, in virtual time.
// Only the call itself is simulated: its duration and its end. The same requests are also sent
// directly, with the same random numbers.
import { hash } from "node:crypto";
import type { ErrorKind } from "tollgate/plugin";
import { createFault, getFault } from "../../../src/model/error.ts";
import type { FailurePoint } from "../../../src/model/call-retry.ts";
import { TargetHealth } from "../../../src/pipeline/routing/target-health.ts";
import type { ClientResponse } from "../../../src/pipeline/response/client-response.ts";
import { dispatch } from "../../../src/pipeline/stages/dispatch.ts";
import { route } from "../../../src/pipeline/stages/route.ts";
import { attributeFault } from "../../../src/pipeline/faults/fault-source.ts";
import { markAccountLimit } from "../../../src/pipeline/faults/rate-limits.ts";
import { VirtualClock } from "./clock.ts";

/** Result of one call. Without a kind it succeeds. */
export interface Outcome {
  readonly ms: number;
  readonly kind?: ErrorKind;
  readonly message?: string;
  readonly retryAfterMs?: number;
  readonly headers?: Record<string, string>;
  readonly stage?: FailurePoint;
}

export interface Asked {
  readonly now: number;
  readonly target: number;
  readonly key: string;
  /** 0 to 1, for this request and attempt only. */
  readonly luck: number;
}

/** Upstreams of one simulation, with their own past. */
export type Upstreams = () => (asked: Asked) => Outcome;

export interface Load {
  readonly requests: number;
  /** Per key and second. */
  readonly rates: Readonly<Record<string, number>>;
  readonly targets: number;
  readonly processes: number;
  readonly seed: number;
  /** Time without content before a hedge. If unset, no hedge. */
  readonly hedgeMs?: number;
}

export interface Result {
  /** Success rate, in total and by key. */
  readonly goodput: number;
  readonly of: Readonly<Record<string, number>>;
  readonly asked: number;
  readonly calls: number;
  /** Calls per target. */
  readonly at: readonly number[];
  /** By key: requests that were not sent immediately to the first target. */
  readonly moved: Readonly<Record<string, number>>;
  /** Clients' errors, by code. */
  readonly told: Readonly<Record<string, number>>;
}

interface Arrival {
  readonly at: number;
  readonly key: string;
  readonly i: number;
}

const BEGIN = 2_000;
const luckOf = (...of: readonly (string | number)[]): number =>
  hash("sha1", of.join(" "), "buffer").readUInt32BE(0) / 2 ** 32;

function arrivals({ requests, rates, seed }: Load): Arrival[] {
  const all = Object.values(rates).reduce((sum, rate) => sum + rate, 0);
  return Object.entries(rates)
    .flatMap(([key, rate]) =>
      Array.from({ length: Math.round((requests * rate) / all) }, (_, i) => ({
        // At even intervals, not synchronized with anything else.
        at: BEGIN + ((i + luckOf(seed, key, i)) * 1_000) / rate,
        key,
      })),
    )
    .toSorted((a, b) => a.at - b.at)
    .map((one, i) => ({ ...one, i }));
}

/** Each request is one call to the first target. */
export async function direct(load: Load, upstreams: Upstreams): Promise<Result> {
  using clock = new VirtualClock(steadyChance());
  const call = upstreams();
  const tally = new Tally(load.targets);
  for (const { at, key, i } of arrivals(load))
    clock.at(at, () => {
      tally.calls++;
      tally.at[0]!++;
      const outcome = call({ now: clock.now, target: 0, key, luck: luckOf(load.seed, i, 1) });
      tally.ended(key, outcome.kind === undefined, "");
    });
  await clock.run();
  return tally.result();
}

export async function gateway(load: Load, upstreams: Upstreams): Promise<Result> {
  using clock = new VirtualClock(steadyChance());
  const call = upstreams();
  const tally = new Tally(load.targets);
  const processes = Array.from({ length: load.processes }, () => processOf(load));
  for (const { at, key, i } of arrivals(load))
    clock.at(at, () => {
      const its = processes[Math.floor(luckOf(load.seed, i, "process") * processes.length)]!;
      let n = 0;
      const make: Make = (target) => {
        if (++n === 1 && (target !== 0 || clock.now > at)) tally.move(key);
        tally.calls++;
        tally.at[target]!++;
        return call({ now: clock.now, target, key, luck: luckOf(load.seed, i, n) });
      };
      const x = exchange(`r${i}`, key, its.gen, make);
      Promise.resolve(
        route({
          ...its,
          x,
          operationSpec: {},
          facts: { features: [] },
          routing: x.state.routing,
        } as never),
      )
        .then((plan) =>
          dispatch(
            x as never,
            plan,
            (() => {}) as never,
            (call, answer) => new SimulatedCall(call, answer),
          ),
        )
        .then(
          () => tally.ended(key, true, ""),
          (problem: unknown) => {
            if (n === 0) tally.move(key);
            tally.ended(key, false, getFault(problem)?.code ?? String(problem));
          },
        );
    });
  await clock.run();
  return tally.result();
}

type Make = (target: number) => Outcome;

class Tally {
  calls = 0;
  readonly at: number[];
  readonly #asked = new Map<string, number>();
  readonly #good = new Map<string, number>();
  readonly #moved = new Map<string, number>();
  readonly #told = new Map<string, number>();

  constructor(targets: number) {
    this.at = Array.from({ length: targets }, () => 0);
  }

  ended(key: string, good: boolean, code: string): void {
    add(this.#asked, key);
    if (good) add(this.#good, key);
    else add(this.#told, code);
  }

  move(key: string): void {
    add(this.#moved, key);
  }

  result(): Result {
    const { calls, at } = this;
    const asked = sum(this.#asked);
    const of = Object.fromEntries(
      [...this.#asked].map(([key, all]) => [key, (this.#good.get(key) ?? 0) / all]),
    );
    const [moved, told] = [Object.fromEntries(this.#moved), Object.fromEntries(this.#told)];
    return { goodput: sum(this.#good) / asked, of, asked, calls, at, moved, told };
  }
}

const add = (to: Map<string, number>, what: string): void =>
  void to.set(what, (to.get(what) ?? 0) + 1);
const sum = (of: Map<string, number>): number => [...of.values()].reduce((all, n) => all + n, 0);

const TIMES = { totalMs: 3_600_000, classes: new Map() };

/** One process of a gateway with its own target state, and a route with all of them in order. */
function processOf({ targets, hedgeMs }: Load) {
  const rests = new TargetHealth();
  const candidates = Array.from({ length: targets }, (_, i) => {
    const name = { provider: `p${i}`, credential: "c", model: "m", base: "" };
    return {
      ...name,
      id: `p${i}/m`,
      mode: "passthrough",
      protocol: "toy",
      info: { operation: "chat" },
      policy: {},
      mounted: {
        i,
        target: rests.target(name),
        provider: { timeouts: TIMES },
        endpoint: { protocol: null, definition: {} },
      },
    };
  });
  const on = new Set(["overloaded", "timeout", "upstream", "rate_limited", "upstream_auth"]);
  const resolution = {
    candidates,
    failoverOn: on,
    translationReasons: new Map(),
    notes: [],
    strategy: "ordered",
    hedge: hedgeMs === undefined ? undefined : { allMs: hedgeMs, classes: new Map() },
  };
  const gen = {
    targetHealth: rests,
    resolver: { resolve: () => resolution },
    retries: { perTarget: 2, total: 3 },
    admissionQueue: { maxWaitMs: 250 },
    timerWheel: { add() {}, remove() {} },
    log: { warn() {}, error() {} },
    mask: (text: string) => text,
  };
  return { gen, frontend: { hooks: { lists: { route: [] } } } };
}

function exchange(id: string, key: string, gen: object, make: Make) {
  return {
    id,
    identity: { id: key },
    model: "any",
    actionType: "generate",
    privacy: "off",
    stream: false,
    body: {},
    setResponseHeader() {},
    state: {
      gen,
      make,
      frontend: { hooks: { lists: { attempt: [] } } },
      connection: {
        req: { headers: {} },
        res: { on() {}, off() {} },
        disconnectListeners: [],
        isDisconnected: false,
        externalWaitMs: 0,
      },
      body: { received: undefined },
      routing: { excluded: [] },
      calls: {},
      outcome: {},
    },
  };
}

/** Replaces the stage that makes the call. */
class SimulatedCall {
  readonly #call: any;
  failurePoint: FailurePoint = "rejected";
  readonly isAwaitingContent = true;

  readonly #answer: Pick<ClientResponse, "commit">;

  constructor(call: unknown, answer: Pick<ClientResponse, "commit">) {
    this.#call = call;
    this.#answer = answer;
  }

  async run(): Promise<void> {
    const { exchange: x, candidate, startedAt } = this.#call;
    const {
      ms,
      kind,
      message = "No.",
      retryAfterMs,
      headers,
      stage,
    } = x.state.make(candidate.mounted.i) as Outcome;
    await new Promise((resolve, reject) => {
      setTimeout(resolve, ms);
      this.#call.onCancel(reject);
    });
    if (kind === undefined) {
      this.#answer.commit();
      return void x.state.gen.targetHealth.recordSuccess(candidate, startedAt, x.identity.id);
    }
    this.failurePoint = this.#call.failurePoint = stage ?? "rejected";
    const problem = createFault(kind, message, { retryAfterMs });
    if (headers) markAccountLimit(getFault(problem)!, headers);
    throw attributeFault(problem, "target", candidate.provider);
  }
}

/** The gateway's own random numbers, the same in each run. */
function steadyChance(): () => number {
  let n = 0;
  return () => luckOf("own", n++);
}
