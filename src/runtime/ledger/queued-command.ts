// A command on its way to the store, and the caller that waits for its verdict.
import { createFault, getFault } from "../../model/error.ts";
import type { StoreCommand, CommandResult } from "../../plugin/store/store.ts";

export interface QueuedCommand {
  command: StoreCommand;
  resolve(verdict: CommandResult): void;
  reject(error: unknown): void;
  queuedAt: number;
  /** Its caller was refused already: should it land, it is taken back. */
  isAbandoned?: boolean;
  /** It was in a batch that was rejected. */
  wasRejected?: boolean;
  /** Whether it is worth a second try; progress and signs of life are not. */
  isRetryable: boolean;
}

/** A command without a caller: its verdict is not looked at. */
export const createHint = (command: StoreCommand): QueuedCommand => ({
  command,
  resolve() {},
  reject() {},
  queuedAt: performance.now(),
  isRetryable: false,
});

/** A call whose reserve came too late for it. */
export const voidLateReserve = (attempt: string, at: number): StoreCommand => ({
  do: "settle",
  at,
  attempt,
  state: "void",
  usage: {},
  costNano: 0n,
  outcome: "abandoned",
});

/** What a store without room refuses: new calls, and signs of life, which ask whether there is room again. */
export const isRefusable = ({ do: kind }: StoreCommand): boolean =>
  kind === "reserve" || kind === "heartbeat";

/** One command of the batch stands in the way of the others. */
export const isInvalidCommandError = (error: unknown): boolean =>
  getFault(error)?.kind === "invalid" || isNotNowError(error);

const isNotNowError = (error: unknown): boolean =>
  getFault(error)?.code === "not_available_offline";

/** An SDK that retries twice, as the official ones do, outlasts a store that restarts within four seconds. */
const RETRY_LATER = { code: "ledger_unavailable", retryAfterMs: 2_000 } as const;

export const createUnavailableFault = (): Error =>
  createFault(
    "unavailable",
    "The ledger cannot be written now; nothing is sent without it.",
    RETRY_LATER,
  );

/** As its caller is told: a client is not told why the ledger takes nothing of it now. */
export const toCallerError = (error: unknown): unknown =>
  isNotNowError(error) ? createUnavailableFault() : error;

/** What a store is asked while a client waits: it may take its time, and not for ever. */
export async function withTimeout<T>(ms: number, answer: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const silent = "The store does not answer; nothing is sent without it.";
  const timer = setTimeout(() => reject(createFault("unavailable", silent, RETRY_LATER)), ms);
  try {
    return await Promise.race([answer, promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Reserves that the store has and that may still land: no client waits for them any more. */
export function markAbandoned(batch: readonly QueuedCommand[]): void {
  for (const waiting of batch)
    if (waiting.command.do === "reserve") {
      waiting.isAbandoned = true;
      waiting.reject(createUnavailableFault());
    }
}

/** The first half last, where it is taken from. */
export const splitInHalves = <T>(batch: readonly T[]): (readonly T[])[] => [
  batch.slice(batch.length >> 1),
  batch.slice(0, batch.length >> 1),
];
