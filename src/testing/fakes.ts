// Fake host objects for tests that run a plugin without a host: a request head, its exchange, a
// call, and a response. They are plain objects with defaults, which a test overrides. They are
// frozen, because the host's objects are read-only.
import { chatOperation } from "../model/operations/chat-operation.ts";
import type { EffectivePolicy } from "../model/facts.ts";
import type { ModelRequest } from "../model/request.ts";
import type { Body } from "../model/values.ts";
import type {
  Call,
  Candidate,
  CallRecord,
  RecordedResponse,
  UpstreamResponse,
} from "../plugin/call.ts";
import type { RequestHead, Exchange } from "../plugin/exchange.ts";
import type { Identity } from "../plugin/identity.ts";
import type { Outcome } from "../plugin/outcome.ts";
import type { Privacy } from "../model/facts.ts";
import { createCallContext, type LossLog } from "./codec-contexts.ts";
import { deepFreeze } from "./freeze.ts";

/** Effects of a plugin on a request. */
export interface ArrivalEffects {
  readonly identities: readonly Identity[];
  readonly requiredPrivacy: readonly Privacy[];
  readonly responseHeaders: ReadonlyMap<string, string>;
  readonly labels: ReadonlyMap<string, string>;
}

const HELLO_BODY: Body = {
  model: "provider/model",
  messages: [{ role: "user", content: "Hello" }],
};

const SAMPLE_REQUEST: ModelRequest = chatOperation.sampleRequest("provider/model");

/**
 * Creates an exchange. As in the host, one object is used for the whole request: `readBody()`
 * returns the same object with its body.
 */
export function exchange(of: Partial<Exchange> = {}): Exchange & { readonly done: ArrivalEffects } {
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
    credentialSources: [],
    cookies: {},
    params: {},
    headers: { "content-type": "application/json", "user-agent": "test" },
    query: new URLSearchParams(),
    signal: never.signal,
    protocol: "chat-completions",
    operation: "chat" as const,
    actionType: "generate" as const,
    action: "generate",
    model: "provider/model",
    stream: false,
    features: [],
    body: HELLO_BODY,
    request: SAMPLE_REQUEST,
    inputSize: { bytes: 74, tokens: 25 },
    ...of,
    identify: (who: Identity) => void identified.push(who),
    requirePrivacy: (to: Privacy) => void tightened.push(to),
    acquireSlot() {},
    setResponseHeader: (name: string, value: string) => void set.set(name, value),
    addLabel: (name: string, value: string) => void labels.set(name, value),
    setRpcOperation() {},
    readBody: async (): Promise<Exchange> => made as unknown as Exchange,
    done: {
      identities: identified,
      requiredPrivacy: tightened,
      responseHeaders: set,
      labels,
    } satisfies ArrivalEffects,
  };
  const { identities: who, requiredPrivacy: how } = made.done;
  Object.defineProperties(made, {
    identity: { get: () => who.at(-1), enumerable: true },
    privacy: { get: () => strictestPrivacy(how), enumerable: true },
    // Recorded effects must stay mutable when the rest is frozen.
    done: {
      get: () => ({
        identities: identified,
        requiredPrivacy: tightened,
        responseHeaders: set,
        labels,
      }),
    },
  });
  return deepFreeze(made) as unknown as Exchange & { readonly done: ArrivalEffects };
}

const PRIVACY_LEVELS: readonly Privacy[] = ["off", "required", "strict"];
const strictestPrivacy = (levels: readonly Privacy[]): Privacy =>
  PRIVACY_LEVELS[Math.max(...levels.map((level) => PRIVACY_LEVELS.indexOf(level)))]!;

/** Creates a request head. Its body is available only after it has been read. */
export function requestHead(
  of: Partial<Exchange> = {},
): RequestHead & { readonly done: ArrivalEffects } {
  return exchange(of);
}

const UNKNOWN_POLICY: EffectivePolicy = {
  retention: { kind: "unknown" },
  trains: "unknown",
  basis: "default",
  reasons: [],
};

/** Creates a candidate `provider/model` in passthrough mode with an unknown policy. Frozen. */
export function candidate(of: Partial<Candidate> = {}): Candidate {
  const model = of.model ?? "model";
  const provider = of.provider ?? "provider";
  return deepFreeze({
    id: `${provider}/${model}`,
    provider,
    protocol: "chat-completions",
    mode: "passthrough" as const,
    model,
    info: { model, operation: "chat" as const },
    credential: "default",
    policy: UNKNOWN_POLICY,
    weight: 1,
    cooldown: undefined,
    ...of,
  });
}

/**
 * Creates the first call of an exchange. Its `fetch` rejects unless the test provides one. Losses
 * that are reported to it are in `losses`. Frozen.
 */
export function call(of: Partial<Call> = {}): Call & LossLog {
  const of1 = of.exchange ?? exchange();
  const whose = candidate(of);
  const context = createCallContext({ ...whose, stream: of1.stream });
  const losses = context.losses;
  const made = Object.defineProperty(
    {
      ...context,
      ...whose,
      signal: of1.signal,
      fetch: async (url: string | URL) => {
        throw new Error(`No response is configured for ${String(url)} in this test.`);
      },
      attemptId: "att_test",
      n: 1,
      exchange: of1,
      ...of,
    },
    "losses",
    { get: () => losses },
  );
  return deepFreeze(made) as Call & LossLog;
}

/**
 * Creates the result of `next()` in an `attempt` hook: a 200 whose `recordResponse()` resolves to
 * `recorded`. Frozen.
 */
export function reply(
  of: Partial<UpstreamResponse> = {},
  recorded: RecordedResponse | null = null,
): UpstreamResponse {
  return deepFreeze({
    status: 200,
    headers: { "content-type": "application/json" },
    limits: [],
    recordResponse: async () => recorded,
    whenSettled: async () => record(),
    ...of,
  });
}

/** Creates the record of a successful call with an exact cost of 1,000 nano-dollars. Frozen. */
export function record(of: Partial<CallRecord> = {}): CallRecord {
  return deepFreeze({
    attemptId: "att_test",
    n: 1,
    candidate: candidate(),
    state: "exact" as const,
    usage: { input: 10, output: 5 },
    costNano: 1_000n,
    startMs: 1,
    ms: { headers: 5, firstToken: 6, total: 10 },
    ...of,
  });
}

/** Creates the outcome of a request that one call answered. Frozen. */
export function outcome(of: Partial<Outcome> = {}): Outcome {
  return deepFreeze({
    status: 200,
    mode: "passthrough" as const,
    calls: [record()],
    cached: false,
    finish: "stop" as const,
    losses: [],
    bytesOut: 100,
    ms: 12,
    ...of,
  });
}
