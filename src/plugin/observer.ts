// The fifth kind of plugin: it is told what happened, and changes nothing. Metrics, an access log, traces and alerts are
// observers. Everything that it is handed is plain data: it may be kept, written as JSON or sent to another process.
import type { ErrorKind } from "../model/error.ts";
import type { FinishReason } from "../model/event.ts";
import type { DataPolicy, Lane, Privacy } from "../model/facts.ts";
import type { Kind } from "../model/request.ts";
import type { Usage } from "../model/usage.ts";
import type { HeadersOut, Opt } from "../model/values.ts";
import type { CallState } from "./call.ts";
import type { ObserverRoute } from "./frontend.ts";
import type { Plugin, Setup } from "./plugin.ts";
import type { Op } from "./protocol.ts";
import type { None, ObjectSchema } from "./schema.ts";
import type { LimitCrossing, LimitState } from "./limit.ts";
import type { Reserve, Settle } from "./store.ts";

/** What `defineObserver` takes; mounted under `observers:` in gateway.yaml. */
export interface ObserverDef<O extends ObjectSchema = None> extends Plugin<O> {
  /**
   * Where it sends what it is told. An observer that sends it anywhere gets records of private requests (`Service-ZDR`)
   * without labels, for a label may be a person.
   */
  sends: "nowhere" | DataPolicy;
  /**
   * Called once for each generation, in the primary process alone, before that generation answers any client. A throw, or
   * more than 10 s, refuses the config. What is counted goes into `ctx.shared`, which outlives a reload.
   */
  setup: Setup<O, Observer>;
}

/** What an observer's `setup` gives. All members may be absent. */
export interface Observer {
  /**
   * What was asked and answered: every request that reached a frontend, refused ones too, once, when its last byte has
   * left and its bill is settled. In the order of each process, those of several processes mixed.
   *
   * Called by the primary process, also for what its workers served, within a fifth of a second, with 1 to 256 records.
   * One call at a time: the next waits for the promise of the one before. Nothing else waits for it: no request, no
   * reload, no other observer. While it is busy at most 10,000 records are kept for it; what is beyond that is lost,
   * counted, and told by a `dropped` notice.
   *
   * It may do anything but change what it is handed. If it throws or rejects, these records are gone for it, the error is
   * in the log, and the next batch comes all the same. At the end of the gateway or of its generation it gets what is left,
   * and has 5 s. What a worker that is killed had not yet handed on, a fifth of a second at most, is lost; bills are not,
   * for they go their own way.
   */
  seen?(batch: readonly RequestRecord[]): void | Promise<void>;
  /**
   * What was turned away at the door, so that no frontend saw it and `seen` does not tell of it: a path that is not there, a Host
   * that is not ours, a head that is no HTTP, one request too many on a connection. Each once. Under the rules of `seen`: many at a
   * time, in the primary process, nothing waits for it, and a throw is logged.
   */
  turnedAway?(batch: readonly TurnedAway[]): void | Promise<void>;
  /**
   * What the gateway tells of itself, as it happens, one at a time, in the primary process. Under the rules of `seen`: it
   * changes nothing, nothing waits for it, and a throw is logged.
   */
  told?(notice: Notice): void | Promise<void>;
  /**
   * What has become durable in the ledger through this gateway, with 1 to 256 lines, within a fifth of a second: every settled call
   * and every correction, once, in the order in which they were written. The sum of its costs is the ledger's, to the nano-dollar:
   * also of calls whose process was killed, which no record tells of. What a start finds open and presumes is not in it.
   *
   * Called by the primary process, under the rules of `seen`: nothing waits for it, a throw is logged and these lines are gone for
   * it, and beyond 10,000 that wait they are lost and told by a `dropped` notice.
   */
  billed?(lines: readonly LedgerLine[]): void | Promise<void>;
  /**
   * Called once, when its generation ends, after all that it is told: what it has kept back for a larger batch goes now. It
   * has what is left of the 5 s, `ctx.fetch` still asks, and a throw is logged. After it the observer is told nothing more.
   */
  end?(): void | Promise<void>;
  /**
   * Served on the admin listener, where gateway.yaml has one, for as long as the generation lives: what was counted, for a
   * program that fetches it. They stand in the process that `seen` is called in.
   */
  routes?: readonly ObserverRoute[];
}

/** One request, when it is over. No word of a prompt, an answer or an error's message is in it, and no address. */
export type RequestRecord = Readonly<{
  /** Unix milliseconds, when it was over. */
  at: number;
  /** The `x-request-id` of the answer. */
  id: string;
  /** The name of its frontend in gateway.yaml. */
  frontend: string;
  /** The frontend's protocol; "" where it has none. */
  protocol: string;
  kind: Kind;
  op: Op;
  /** The operation within its protocol: "generate", "count". */
  name: string;
  method: string;
  /** As the client wrote it; "" when the request was refused before its body was read. */
  model: string;
  stream: boolean;
  /** null: no provider was asked. */
  lane: Lane | null;
  /** What the client was told, or 499 when it went away first. */
  status: number;
  /** Why it failed, without the words, which may quote what was sent. */
  fault?: Opt<{ readonly kind: ErrorKind; readonly code: string | undefined }>;
  finish?: Opt<FinishReason>;
  /** Answered by a middleware's recording: nothing was asked of a provider. */
  cached: boolean;
  /** The id of its key; undefined for a request that was not identified. */
  key: Opt<string>;
  /** Where its key stands among the accounts: "acme/research". Undefined: in none. */
  account?: Opt<string>;
  /** Of its key and of its accounts, and what hooks noted with `x.label`. */
  labels: HeadersOut;
  privacy: Privacy;
  /** What a translation could not carry, counted. */
  losses: number;
  bytesOut: number;
  /** From its first byte to its end. */
  ms: number;
  trace: RequestTrace;
  /** Of that the gateway's own, to the microsecond: what is neither waiting for the client's body nor a provider's answer. */
  ownMs: number;
  /** Every attempt, in order; the last one answered, if any did. */
  calls: readonly RequestRecordCall[];
}>;

/**
 * Where a request stands in a trace, as W3C Trace Context has it: its client's, or one that begins with it. Every request has one,
 * kept or not. Ids are hex, in lower case.
 */
export type RequestTrace = Readonly<{
  /** 32 digits. */
  traceId: string;
  /** Of the request itself, 16 digits. */
  spanId: string;
  /** The client's span, which the request is a part of. Undefined: it begins its trace. */
  parentId?: Opt<string>;
  /** Whether the client keeps its trace. Undefined: it brought none. */
  sampled?: Opt<boolean>;
  /**
   * The client's `tracestate`: its own text, of at most 512 characters. Not told, for a private request, to an observer that sends
   * it elsewhere.
   */
  state?: Opt<string>;
}>;

/** One attempt of a request: one entry of the ledger. */
export type RequestRecordCall = Readonly<{
  n: number;
  /** Of this attempt, within its request's `trace`: what a provider that is handed the trace has as its parent. */
  spanId: string;
  provider: string;
  /** Upstream's own name. */
  model: string;
  credential: string;
  protocol: string | null;
  lane: Lane;
  state: CallState;
  usage: Usage;
  /** null: it has no known price. */
  costNano: bigint | null;
  fault?: Opt<{ readonly kind: ErrorKind; readonly code: string | undefined }>;
  ms: { readonly head?: Opt<number>; readonly content?: Opt<number>; readonly total: number };
}>;

/** A request, or what was to become one, that was refused before a frontend saw it. Its path, headers and address are not in it. */
export type TurnedAway = Readonly<{
  /** Unix milliseconds. */
  at: number;
  /** The `x-request-id` of the refusal. */
  id: string;
  /** What the client was told. */
  status: number;
  /** Why: "unknown_path", "host_unknown", "too_many_in_flight", "http_malformed", "tls". */
  code: string;
  /** Undefined where no whole head was read. */
  method?: Opt<string>;
  /** Which door: the one that clients reach, or the operators'. */
  listener: "clients" | "admin";
}>;

/** One bill as the ledger has it: a call that was settled, or a correction of one. */
export type LedgerLine = Readonly<{
  /** Unix milliseconds. */
  at: number;
  type: "settle" | "adjust";
  /** Of the call; its rows in the ledger are found by it. */
  attempt: string;
  /** What its reserve said. Undefined: that was before this gateway had an observer that asks for bills, and of every correction. */
  call?: Opt<LedgerCall>;
  state: CallState;
  usage: Usage;
  /** null: it has no known price. Of a correction what it adds, which may be less than nothing. */
  costNano: bigint | null;
  /** "ok", the kind of a failure, "presumed". */
  outcome: string;
  finish?: Opt<string>;
  ms?: Settle["ms"];
}>;

/** What the ledger knew of a call before it was sent. */
export type LedgerCall = Readonly<
  Pick<Reserve, "request" | "n" | "key" | "account" | "labels" | "target" | "privacy" | "asked"> & {
    /** The limits that it drew on, as they stood then. */
    limits: readonly LimitState[];
  }
>;

/** Something that the gateway tells of itself. New types are added within api 1: what is not known is passed over. */
export type Notice = Readonly<{ at: number }> &
  (
    | Readonly<{
        /** A reload that was asked for, or that a changed file brought. */
        type: "reloaded";
        why: "file" | "signal" | "command";
        /** False: the config was refused, and the generation before goes on. */
        ok: boolean;
        /** The one that answers now. */
        generation: number;
      }>
    | Readonly<{
        /** After a failure a provider's credential, for one model or for all, is tried last for a while. */
        type: "rests";
        provider: string;
        credential: string;
        /** null: all of its models. */
        model: string | null;
        kind: ErrorKind;
        /** Unix milliseconds. */
        until: number;
      }>
    | Readonly<{
        /**
         * What has rested answers again: told once, by the first answer after the failure. Each process has its own view of
         * what rests, so with several workers a rest and its end may be told by each.
         */
        type: "recovered";
        provider: string;
        credential: string;
        /** null: it was all of its models. */
        model: string | null;
      }>
    | (Readonly<{
        /**
         * What a limit has counted went over 50, 80, 95 or 100 per cent of it, by day, week, month or in total. Once for each
         * crossing, over all processes and restarts: the settle that did it tells of it. A kill in that moment may lose it.
         */
        type: "budget_crossed";
      }> &
        Readonly<LimitCrossing>)
    | Readonly<{
        /** A key was made, given a new secret, or ended, while the gateway ran. */
        type: "key";
        change: "made" | "moved" | "rotated" | "revoked";
        /** Its id; no name, for that may be a person. */
        key: string;
      }>
    | Readonly<{
        /** Once for all processes. False: the ledger takes no rows, and new calls are refused. True: it takes them again. */
        type: "ledger";
        ok: boolean;
      }>
    | Readonly<{
        /** A worker process has ended by itself; another one takes its place. */
        type: "worker_gone";
        worker: number;
        pid: number;
        /** "SIGKILL", "exit code 1". */
        how: string;
        /** Calls that it had open, settled as estimated. */
        calls: number;
      }>
    | Readonly<{
        /** This observer was too slow: so many records were not kept for it since the last such notice. */
        type: "dropped";
        records: number;
      }>
  );
