// What the host would hand a plugin, for tests that run without one: an arrival, its exchange, a call, a reply. Plain
// objects with sensible values; whatever matters to a test is given by it. Frozen, as the host's are read-only.
import { chatWork } from "../model/chat-work.ts";
import type { EffectivePolicy } from "../model/facts.ts";
import type { ModelRequest } from "../model/request.ts";
import type { Body } from "../model/values.ts";
import type { Call, Candidate, CallRecord, RecordedAnswer, Reply } from "../plugin/call.ts";
import type { Arrival, Exchange } from "../plugin/exchange.ts";
import type { Identity } from "../plugin/identity.ts";
import type { Outcome } from "../plugin/outcome.ts";
import type { Privacy } from "../model/facts.ts";
import { asking, type LossLog } from "./asking.ts";
import { freeze } from "./freeze.ts";

/** What a plugin did to an arrival. */
export interface PretendResult {
  readonly identified: readonly Identity[];
  readonly tightened: readonly Privacy[];
  readonly set: ReadonlyMap<string, string>;
  readonly labels: ReadonlyMap<string, string>;
}

const HELLO: Body = { model: "provider/model", messages: [{ role: "user", content: "Hello" }] };

const REQUEST: ModelRequest = chatWork.sample("provider/model");

/** One object for the whole life of a request, as the host has it: `read()` gives the same one with its body. */
export function exchange(of: Partial<Exchange> = {}): Exchange & { readonly done: PretendResult } {
  const identified: Identity[] = of.identity ? [of.identity] : [];
  const tightened: Privacy[] = [of.privacy ?? "off"];
  const set = new Map<string, string>();
  const labels = new Map<string, string>();
  const never = new AbortController();
  const made = {
    id: "req_test",
    frontend: "chat-completions",
    method: "POST",
    path: "/v1/chat/completions",
    address: "127.0.0.1",
    certificate: undefined,
    presents: [],
    params: {},
    headers: { "content-type": "application/json", "user-agent": "test" },
    query: new URLSearchParams(),
    signal: never.signal,
    protocol: "chat-completions",
    kind: "chat" as const,
    op: "generate" as const,
    name: "generate",
    model: "provider/model",
    stream: false,
    features: [],
    body: HELLO,
    request: REQUEST,
    size: { bytes: 74, input: 25 },
    ...of,
    identify: (who: Identity) => void identified.push(who),
    tighten: (to: Privacy) => void tightened.push(to),
    occupy() {},
    header: (name: string, value: string) => void set.set(name, value),
    label: (name: string, value: string) => void labels.set(name, value),
    read: async (): Promise<Exchange> => made as unknown as Exchange,
    done: { identified, tightened, set, labels },
  };
  const { identified: who, tightened: how } = made.done;
  Object.defineProperties(made, {
    identity: { get: () => who.at(-1), enumerable: true },
    privacy: { get: () => strictest(how), enumerable: true },
    // What is noted must stay open when the rest is frozen.
    done: { get: () => ({ identified, tightened, set, labels }) },
  });
  return freeze(made) as unknown as Exchange & { readonly done: PretendResult };
}

const LEVELS: readonly Privacy[] = ["off", "required", "strict"];
const strictest = (levels: readonly Privacy[]): Privacy =>
  LEVELS[Math.max(...levels.map((level) => LEVELS.indexOf(level)))]!;

/** The head alone: the body is there only once it was read. */
export function arrival(of: Partial<Exchange> = {}): Arrival & { readonly done: PretendResult } {
  return exchange(of);
}

const POLICY: EffectivePolicy = {
  retention: { kind: "unknown" },
  trains: "unknown",
  basis: "default",
  because: [],
};

/** A candidate of `provider/model` on the verbatim lane, with an unknown policy. Frozen. */
export function candidate(of: Partial<Candidate> = {}): Candidate {
  const model = of.model ?? "model";
  const provider = of.provider ?? "provider";
  return freeze({
    id: `${provider}/${model}`,
    provider,
    protocol: "chat-completions",
    lane: "verbatim" as const,
    model,
    info: { model, kind: "chat" as const },
    credential: "default",
    policy: POLICY,
    weight: 1,
    resting: undefined,
    ...of,
  });
}

/**
 * The first call of an exchange. Its `fetch` rejects unless one is given; its `losses` say what was declared lost.
 * Frozen.
 */
export function call(of: Partial<Call> = {}): Call & LossLog {
  const of1 = of.exchange ?? exchange();
  const whose = candidate(of);
  const told = asking({ ...whose, stream: of1.stream });
  const losses = told.losses;
  const made = Object.defineProperty(
    {
      ...told,
      ...whose,
      signal: of1.signal,
      fetch: async (url: string | URL) => {
        throw new Error(`Nothing answers ${String(url)} in this test.`);
      },
      attempt: "att_test",
      n: 1,
      exchange: of1,
      ...of,
    },
    "losses",
    { get: () => losses },
  );
  return freeze(made) as Call & LossLog;
}

/** What `next()` of an `attempt` hook gives: a 200 whose `record()` resolves to `recorded`. Frozen. */
export function reply(of: Partial<Reply> = {}, recorded: RecordedAnswer | null = null): Reply {
  return freeze({
    status: 200,
    headers: { "content-type": "application/json" },
    limits: [],
    record: async () => recorded,
    settled: async () => record(),
    ...of,
  });
}

/** A call that answered, was counted exactly and cost 1,000 nano-dollars. Frozen. */
export function record(of: Partial<CallRecord> = {}): CallRecord {
  return freeze({
    attempt: "att_test",
    n: 1,
    candidate: candidate(),
    state: "exact" as const,
    usage: { input: 10, output: 5 },
    costNano: 1_000n,
    startMs: 1,
    ms: { head: 5, content: 6, total: 10 },
    ...of,
  });
}

/** The end of a request that was answered by one call. Frozen. */
export function outcome(of: Partial<Outcome> = {}): Outcome {
  return freeze({
    status: 200,
    lane: "verbatim" as const,
    calls: [record()],
    cached: false,
    finish: "stop" as const,
    losses: [],
    bytesOut: 100,
    ms: 12,
    ...of,
  });
}
