// A command in the queue, with the caller that waits for its result.
import { createFault, getFault } from "../../model/error.ts";
import type { StoreCommand, CommandResult } from "../../plugin/store/store.ts";

export interface QueuedCommand {
  command: StoreCommand;
  resolve(verdict: CommandResult): void;
  reject(error: unknown): void;
  queuedAt: number;
  /** Whether the caller was already rejected. If the command is applied later, it is voided. */
  isAbandoned?: boolean;
  /** Whether the command was in a rejected batch. */
  wasRejected?: boolean;
  /** Whether the command is retried after a rejection. False for progress and heartbeats. */
  isRetryable: boolean;
}

/** Wraps a command without a caller. Its result is ignored. */
export const createHint = (command: StoreCommand): QueuedCommand => ({
  command,
  resolve() {},
  reject() {},
  queuedAt: performance.now(),
  isRetryable: false,
});

/** Returns the command that voids a reserve that was applied too late. */
export const voidLateReserve = (attempt: string, at: number): StoreCommand => ({
  do: "settle",
  at,
  attempt,
  state: "void",
  usage: {},
  costNano: 0n,
  outcome: "abandoned",
});

/**
 * Whether a store without disk space may refuse the command. True for reserves, and for heartbeats,
 * which test whether there is space again.
 */
export const isRefusable = ({ do: kind }: StoreCommand): boolean =>
  kind === "reserve" || kind === "heartbeat";

/** Whether the batch was rejected because of one of its commands. */
export const isInvalidCommandError = (error: unknown): boolean =>
  getFault(error)?.kind === "invalid" || isNotNowError(error);

const isNotNowError = (error: unknown): boolean =>
  getFault(error)?.code === "not_available_offline";

/**
 * Error fields for the client. An SDK that retries twice, as the official SDKs do, survives a store
 * restart of up to 4 s.
 */
const RETRY_LATER = { code: "ledger_unavailable", retryAfterMs: 2_000 } as const;

export const createUnavailableFault = (): Error =>
  createFault(
    "unavailable",
    "The ledger cannot be written now, so the request was not sent.",
    RETRY_LATER,
  );

/**
 * Returns the error for the caller. The error does not contain the reason why the ledger accepts no
 * commands.
 */
export const toCallerError = (error: unknown): unknown =>
  isNotNowError(error) ? createUnavailableFault() : error;

/** Limits the time of a store query that a client waits for. */
export async function withTimeout<T>(ms: number, answer: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const silent = "The store does not respond, so the request was not sent.";
  const timer = setTimeout(() => reject(createFault("unavailable", silent, RETRY_LATER)), ms);
  try {
    return await Promise.race([answer, promise]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Rejects the reserves that the store is processing. These reserves may still be applied, but no
 * client waits for them.
 */
export function markAbandoned(batch: readonly QueuedCommand[]): void {
  for (const waiting of batch)
    if (waiting.command.do === "reserve") {
      waiting.isAbandoned = true;
      waiting.reject(createUnavailableFault());
    }
}

/** Splits a batch in two. The first half is last, because batches are taken from the end. */
export const splitInHalves = <T>(batch: readonly T[]): (readonly T[])[] => [
  batch.slice(batch.length >> 1),
  batch.slice(0, batch.length >> 1),
];
