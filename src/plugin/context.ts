import type { EffectivePolicy, ModelInfo, Privacy } from "../model/facts.ts";
import type { Operation } from "../model/request.ts";
import type { OperationSpec } from "../model/operations/operation-spec.ts";
import type { Opt } from "../model/values.ts";
import type { Usage } from "../model/usage.ts";
import type { SubrequestResult, SubrequestOptions, Subrequest } from "./subrequest.ts";
import type { Candidate, ProviderClient } from "./call.ts";
import type { Identity } from "./identity.ts";
import type { GatewayStats } from "./gateway-stats.ts";
import type { KeyRecord } from "./store/key.ts";
import type { Store } from "./store/store.ts";

/**
 * What the host lends to one plugin, from its `setup` on. Everything with an end has an owner here, and ends in reverse order when
 * the generation has left. A store's own context has no `keys`, `catalog` and `ledger`, which are made from the store.
 */
export type Context = Readonly<{
  /** "providers.anthropic": the path in gateway.yaml, in every log line and error. */
  id: string;
  /** Writes to the operator's log. */
  log: Logger;
  /** Aborts when this generation leaves, at a reload or a stop: its last requests may still be under way, and `fetch` still asks. */
  signal: AbortSignal;
  /** Ends it with the generation, and gives it back. What is given too late is ended at once. */
  own<T extends Disposable | AsyncDisposable>(thing: T): T;
  /** Called once when the generation has ended. A throw is logged, and the others end all the same. */
  onDispose(undo: () => unknown): void;
  /** Calls `tick` again and again until the generation leaves. It keeps no process alive, never overlaps itself, and its errors are logged. */
  runEvery(ms: number, tick: (signal: AbortSignal) => unknown): void;
  /** One thing across reloads, within this plugin and this process: made by the first that asks, ended when no generation holds it. */
  shared<T extends object>(key: string, create: () => T, end?: (thing: T) => unknown): T;
  /**
   * Asks the same plugin in the gateway's other processes, where there are any: what the first says that knows. `answer`
   * is what this one says when it is asked. Plain data both ways.
   */
  createPeerQuery<Q, A>(
    answer: (question: Q) => A | undefined,
  ): (question: Q) => Promise<A | undefined>;
  /**
   * Never with a credential. The public internet, and what the operator names: origins in options that the schema marks
   * `x-origin: true`, or in the definition's `needs`, are dialled as they are, on a private network too. Redirects are not
   * followed, and an address that an answer gives is dialled by the same rule. Whatever goes wrong is a fault.
   *
   * A path ("/v1/models") is asked of this gateway itself, at the port that clients reach and as any of them asks it: with the key
   * that the plugin was given and sends, by all rules and limits, with its row in the ledger. Before the gateway serves it rejects.
   */
  fetch: ProviderClient["fetch"];
  /**
   * Asks a model on behalf of a client's request: the whole walk again, with that client's key and privacy. Its calls are rows of their own,
   * count against the same limits, and cost the same account. It is asked about by all middlewares but this one and those that asked
   * before it, and at most four deep. A refusal is thrown; what a hook does not catch of it is that hook's failure, and no
   * word on the client's request. It needs no `sends`: what may leave, and where to, is decided again.
   */
  sendSubrequest(request: Subrequest, of: SubrequestOptions): Promise<SubrequestResult>;
  /**
   * The record of a client's secret: checked, hashed, remembered for a minute. Undefined: unknown, revoked or expired, and a
   * client is not told which. A promise only where the store has to be asked; it rejects as `unavailable` when the store does
   * not answer within 5 s.
   */
  keys: { find(secret: string): KeyRecord | undefined | Promise<KeyRecord | undefined> };
  /** Models that the gateway offers. */
  catalog: {
    /** The models that this identity may ask for: aliases first, then by provider as gateway.yaml has them. */
    list(of: {
      identity?: Opt<Identity>;
      privacy?: Opt<Privacy>;
      operation?: Opt<Operation>;
    }): readonly ListedModel[];
    /** One of them by its id, or by another name that the gateway has for it. */
    find(id: string): ListedModel | undefined;
    /** Every kind that is mounted, by its word. */
    operations(): ReadonlyMap<string, OperationSpec>;
  };
  /**
   * What this much would cost at a candidate's price, now and without what a request asks for besides (a tier, a size): in
   * nano-dollars, null where the price is not known or has no line for a count. It reserves nothing.
   */
  quoteCost(candidate: Pick<Candidate, "info" | "policy">, usage: Usage): bigint | null;
  /**
   * What the ledger says, and what limits have counted at a moment: to look takes nothing and leaves no row. Where the store cannot tell,
   * `counted` is absent or says nothing.
   */
  ledger: Pick<Store, "listEntries" | "sumEntries" | "readLimits">;
  /**
   * How the gateway is now, all of its processes together: for metrics and pages. Asked by several at one time it is found out
   * once. It answers within about a second, and fails only before the gateway serves.
   */
  stats(): Promise<GatewayStats>;
  /**
   * An environment variable that the definition's `needs.env` names; undefined where it is not set. Any other name throws. What
   * an operator should say belongs in an option: this is for names that a platform gives, such as AWS_REGION.
   */
  env(name: string): string | undefined;
  /**
   * A file that the definition's `needs.files` name, or that is in a folder of theirs: absolute, or relative to gateway.yaml. As
   * it is now, 16 MiB at most. Any other path is refused, and so is a link that leads out of such a folder. It rejects as the
   * system does where there is none.
   */
  readFile(path: string): Promise<Buffer>;
  /** Where this plugin may keep files: a folder of its own under `state_dir`, 0700, made when first asked for. */
  stateDir(): string;
}>;

/** A model as the catalog lists it: the merged facts, under the id that a client writes. */
export interface ListedModel extends ModelInfo {
  /** Name that a client writes in `model`. */
  id: string;
  /** Name of the provider in gateway.yaml. */
  provider: string;
  /** Data policy that applies to the model. */
  policy: EffectivePolicy;
}

/**
 * Writes one line to the operator's log, under the plugin's id. Registered secrets are masked. It never throws and
 * never waits.
 */
export type Logger = Readonly<
  Record<
    "debug" | "info" | "warn" | "error",
    (fields: Readonly<Record<string, unknown>>, message: string) => void
  >
>;
