// A command on its way to the store, and the caller that waits for its verdict.
import { fault, faultOf } from "../../model/error.ts";
import type { StoreCommand, Verdict } from "../../plugin/store.ts";

export interface QueuedCommand {
  command: StoreCommand;
  resolve(verdict: Verdict): void;
  reject(error: unknown): void;
  since: number;
  /** Its caller was refused already: should it land, it is taken back. */
  abandoned?: boolean;
  /** It was in a batch that was rejected. */
  tried?: boolean;
  /** Whether it is worth a second try; progress and signs of life are not. */
  again: boolean;
}

/** A command without a caller: its verdict is not looked at. */
export const hint = (command: StoreCommand): QueuedCommand => ({
  command,
  resolve() {},
  reject() {},
  since: performance.now(),
  again: false,
});

/** A call whose reserve came too late for it. */
export const tooLate = (attempt: string, at: number): StoreCommand => ({
  do: "settle",
  at,
  attempt,
  state: "void",
  usage: {},
  costNano: 0n,
  outcome: "abandoned",
});

/** What a store without room refuses: new calls, and signs of life, which ask whether there is room again. */
export const isNew = ({ do: kind }: StoreCommand): boolean =>
  kind === "reserve" || kind === "alive";

/** One command of the batch stands in the way of the others. */
export const impossible = (error: unknown): boolean =>
  faultOf(error)?.kind === "invalid" || isNotNow(error);

const isNotNow = (error: unknown): boolean => faultOf(error)?.code === "not_now";

/** An SDK that retries twice, as the official ones do, outlasts a store that restarts within four seconds. */
const LATER = { code: "ledger_unavailable", retryAfterMs: 2_000 } as const;

export const unavailable = (): Error =>
  fault("unavailable", "The ledger cannot be written now; nothing is sent without it.", LATER);

/** As its caller is told: a client is not told why the ledger takes nothing of it now. */
export const refusal = (error: unknown): unknown => (isNotNow(error) ? unavailable() : error);

/** What a store is asked while a client waits: it may take its time, and not for ever. */
export async function within<T>(ms: number, answer: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const silent = "The store does not answer; nothing is sent without it.";
  const timer = setTimeout(() => reject(fault("unavailable", silent, LATER)), ms);
  try {
    return await Promise.race([answer, promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Reserves that the store has and that may still land: no client waits for them any more. */
export function abandon(batch: readonly QueuedCommand[]): void {
  for (const waiting of batch)
    if (waiting.command.do === "reserve") {
      waiting.abandoned = true;
      waiting.reject(unavailable());
    }
}

/** The first half last, where it is taken from. */
export const halves = <T>(batch: readonly T[]): (readonly T[])[] => [
  batch.slice(batch.length >> 1),
  batch.slice(0, batch.length >> 1),
];
