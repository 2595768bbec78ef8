// Sends all rows to the store through one queue, in batches.
//
// If a batch was rejected, no command of the batch was applied. If commands are invalid, only those
// commands are rejected. After any other rejection, settles are retried until they succeed.
// Reserves are rejected after 500 ms, because a client waits for them.
//
// A store that does not respond is handled differently from a store that rejects. A starved CPU, a
// disk that is busy with other writes, or a checkpoint can delay a commit by 1 or 2 s. A request
// that is rejected for this reason fails, but a request that waits is only delayed. The queue
// therefore waits 5 s, because most clients allow 1 minute or more for the first byte. After that,
// every new call is rejected immediately until the store responds again. A reserve that was applied
// after it was rejected is voided, because no call was sent for it.
import { setTimeout as sleep } from "node:timers/promises";
import { wallClock } from "../../lib/time/wall-clock.ts";
import { BatchLoop } from "../../lib/queue/batch-loop.ts";
import { settlesWithin } from "../../lib/time/settles-within.ts";
import { yieldToEventLoop } from "../../lib/yield.ts";
import { fail, publicErrorText } from "../../model/error.ts";
import type { Price } from "../../model/facts.ts";
import type { AccountRecord, KeyRecord } from "../../plugin/store/account.ts";
import { priceHash } from "../../money/price.ts";
import type { Limit } from "../../plugin/store/limit.ts";
import type {
  MemberChange,
  StoreCommand,
  Reserve,
  Settle,
  Store,
  CommandResult,
} from "../../plugin/store/store.ts";
import { LedgerCommandQueue } from "./ledger-command-queue.ts";
import { LedgerHealth } from "./ledger-health.ts";
import { StallTimer } from "./stall-timer.ts";
import type { Stamped } from "../../pipeline/generation.ts";
import type { CommandOf, LedgerQueueOptions, LedgerQueue } from "./ledger-queue-api.ts";
import {
  markAbandoned,
  splitInHalves,
  createHint,
  isInvalidCommandError,
  toCallerError,
  voidLateReserve,
  createUnavailableFault,
  type QueuedCommand,
} from "./queued-command.ts";

const STORE_TIMEOUT_MS = 5_000;
/** How long a reserve waits for a rejecting store to recover, in milliseconds. */
const MAX_RECOVERY_WAIT_MS = 500;

export const createLedgerQueue = (
  store: Pick<Store, "apply" | "lease">,
  options: LedgerQueueOptions = {},
): LedgerQueue => new BatchingLedgerQueue(store, options);

class BatchingLedgerQueue implements LedgerQueue {
  readonly #store: Pick<Store, "apply">;
  readonly #now: () => number;
  readonly #storeTimeoutMs: number;
  readonly #maxRecoveryWaitMs: number;
  readonly #health: LedgerHealth;
  readonly #stallTimer: StallTimer;
  readonly #queue = new LedgerCommandQueue();
  readonly #batches = new BatchLoop(
    {
      // If there are no commands, the queue only tests whether the store has recovered.
      pending: () => (this.#isEnded ? 0 : this.isHealthy ? this.#queue.length : 1),
      step: () => (this.isHealthy ? this.#send(this.#queue.takeBatch()) : this.#recover()),
    },
    { delayMs: 0 },
  );
  readonly #writtenPrices = new Set<string>();
  readonly #heartbeat: NodeJS.Timeout | undefined;
  readonly #instanceInfo: LedgerQueueOptions["instanceInfo"];
  readonly #isTransferring: () => boolean;
  /** Batch that the store is processing. */
  #batchInFlight: readonly QueuedCommand[] = [];
  #isClosed = false;
  #isEnded = false;
  #backoff = new AbortController();

  constructor(
    store: Pick<Store, "apply" | "lease">,
    {
      now = wallClock,
      onFailureChange = () => {},
      storeTimeoutMs = STORE_TIMEOUT_MS,
      ...more
    }: LedgerQueueOptions,
  ) {
    this.#instanceInfo = more.instanceInfo;
    this.#isTransferring = more.isTransferring ?? (() => false);
    this.#store = store;
    this.#now = now;
    this.#storeTimeoutMs = storeTimeoutMs;
    this.#maxRecoveryWaitMs = Math.min(MAX_RECOVERY_WAIT_MS, storeTimeoutMs);
    this.#health = new LedgerHealth(onFailureChange);
    this.#stallTimer = new StallTimer(storeTimeoutMs, () => void this.#onStall());
    if (store.lease)
      this.#heartbeat = setInterval(
        () => this.#push(createHint(this.#heartbeatCommand())),
        store.lease.heartbeatMs,
      ).unref();
  }

  reserve(command: Stamped<Reserve>, price?: Price): Promise<CommandResult> {
    if (
      this.#isClosed ||
      this.#queue.isFull ||
      this.#health.failingForMs() > this.#maxRecoveryWaitMs
    )
      return Promise.reject(createUnavailableFault());
    if (price && command.price !== null) this.#writePrice(command.price, price, command.at);
    return this.#enqueue(command);
  }

  settle(command: Stamped<Settle>, prices?: readonly Price[]): Promise<void> {
    if (prices) for (const price of prices) this.#writePrice(priceHash(price), price, command.at);
    this.#queue.dropProgress(command.attempt);
    return this.#enqueue<void>(command);
  }

  progress(command: CommandOf<"progress">): void {
    this.#queue.recordProgress(command);
    this.#batches.wake();
  }

  async adjust(command: CommandOf<"adjust">): Promise<void> {
    await this.#enqueue(command);
  }

  async writeKey(key: KeyRecord): Promise<void> {
    await this.#enqueue({ do: "key", at: this.#now(), key });
  }

  async writeAccount(account: AccountRecord): Promise<void> {
    await this.#enqueue({ do: "account", at: this.#now(), account });
  }

  async changeMember(limits: readonly Limit[], change: MemberChange): Promise<void> {
    await this.#enqueue({ do: "member", at: this.#now(), limits, change });
  }

  async flush(): Promise<void> {
    await this.#enqueue(this.#heartbeatCommand());
  }

  markUnreachable(why: string): void {
    this.#health.markUnreachable(why, this.#storeTimeoutMs);
    markAbandoned(this.#batchInFlight);
    this.#queue.rejectOverdue(0);
    // Starts the recovery loop, which retries until the store responds.
    this.#batches.wake();
  }

  suspectFailure(why: string): void {
    if (this.isHealthy) this.#health.markFailing(why);
    this.#batches.wake();
  }

  probe(): void {
    this.#backoff.abort();
  }

  async close(withinMs = 10_000): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#heartbeat);
    if (await settlesWithin(withinMs, this.#enqueue(this.#heartbeatCommand()))) return;
    this.#isEnded = true;
    const lost = this.#queue.rejectAll();
    fail("internal", `The ledger was closed with ${lost} unwritten commands.`);
  }

  get isHealthy(): boolean {
    return this.#health.failure === undefined;
  }

  get pendingCount(): number {
    return this.#queue.commandCount;
  }

  get failure(): string | undefined {
    return this.#health.failure;
  }

  get isUnreachable(): boolean {
    return this.#health.isUnreachable;
  }

  #heartbeatCommand(): StoreCommand {
    const about = this.#instanceInfo?.();
    return { do: "heartbeat", at: this.#now(), ...(about && { info: about }) };
  }

  /** Queues a command. A caller that needs no result can use `void`. */
  #enqueue<T extends CommandResult | void = CommandResult>(command: StoreCommand): Promise<T> {
    return new Promise((resolve, reject) =>
      this.#push({
        command,
        resolve: resolve as (verdict: CommandResult) => void,
        reject,
        queuedAt: performance.now(),
        isRetryable: true,
      }),
    );
  }

  #push(waiting: QueuedCommand): void {
    this.#queue.push(waiting);
    this.#batches.wake();
  }

  /** Queues the price row for a hash before the first row that refers to it. */
  #writePrice(hash: string, price: Price, at: number): void {
    if (this.#writtenPrices.has(hash)) return;
    this.#writtenPrices.add(hash);
    void this.#enqueue({ do: "price", at, hash, price }).catch(() =>
      this.#writtenPrices.delete(hash),
    );
  }

  /**
   * Retries after the backoff. Settles are sent before reserves, because a reserve may be refused.
   * A heartbeat then tests whether the store accepts new calls.
   */
  async #recover(): Promise<void> {
    this.#backoff = new AbortController();
    const { signal } = this.#backoff;
    await sleep(this.#health.backoffMs, undefined, { ref: false, signal }).catch(() => {});
    this.#queue.rejectOverdue(this.#maxRecoveryWaitMs);
    const batch = this.#queue.takeMandatory();
    if (batch.length > 0) await this.#send(batch);
    const error =
      (await this.#attempt([createHint(this.#heartbeatCommand())])) ??
      (await this.#voidMaybeApplied());
    if (error === undefined) this.#health.markHealthy();
    else this.#health.markFailing(publicErrorText(error));
  }

  /**
   * Voids reserves that may have been applied, in one batch each. Such a reserve usually does not
   * exist, and a batch with an unknown reserve is rejected completely.
   */
  async #voidMaybeApplied(): Promise<unknown> {
    const { maybeApplied } = this.#queue;
    for (let name = maybeApplied.at(-1); name !== undefined; name = maybeApplied.at(-1)) {
      const error = await this.#attempt([createHint(voidLateReserve(name, this.#now()))]);
      if (error !== undefined && !isInvalidCommandError(error)) return error;
      maybeApplied.pop();
    }
    return undefined;
  }

  /** Sends a batch. Returns the error, or undefined if the batch was applied. */
  async #attempt(batch: readonly QueuedCommand[]): Promise<unknown> {
    this.#batchInFlight = batch;
    this.#stallTimer.start();
    try {
      const verdicts = await this.#store.apply(batch.map(({ command }) => command));
      for (let i = 0; i < batch.length; i++) this.#onApplied(batch[i]!, verdicts[i]!);
      return undefined;
    } catch (error) {
      return error ?? new Error("rejected");
    } finally {
      this.#batchInFlight = [];
      this.#stallTimer.stop();
    }
  }

  async #send(batch: readonly QueuedCommand[]): Promise<void> {
    const recovering = !this.isHealthy;
    const error = await this.#attempt(batch);
    if (error === undefined) {
      if (!recovering) this.#health.markHealthy();
    } else if (!isInvalidCommandError(error)) this.#onRejected(batch, error);
    else if (batch.length === 1) batch[0]!.reject(toCallerError(error));
    else await this.#sendInHalves(batch);
  }

  /**
   * Sends a batch that contains an invalid command, by bisection. Finding the invalid command costs
   * the other commands a few commits instead of one each.
   */
  async #sendInHalves(batch: readonly QueuedCommand[]): Promise<void> {
    const waiting = splitInHalves(batch);
    for (let half = waiting.pop(); half !== undefined; half = waiting.pop()) {
      const error = await this.#attempt(half);
      if (error === undefined) continue;
      if (!isInvalidCommandError(error))
        return this.#onRejected([half, ...waiting.toReversed()].flat(), error);
      if (half.length === 1) half[0]!.reject(toCallerError(error));
      else waiting.push(...splitInHalves(half));
    }
  }

  #onApplied({ command, resolve, isAbandoned }: QueuedCommand, result: CommandResult): void {
    resolve(result);
    if (isAbandoned && result.ok && command.do === "reserve")
      this.#push({
        ...createHint(voidLateReserve(command.attempt, this.#now())),
        isRetryable: true,
      });
  }

  #onRejected(batch: readonly QueuedCommand[], error: unknown): void {
    this.#health.markFailing(publicErrorText(error));
    this.#queue.putBack(batch);
    this.#queue.rejectOverdue(this.#maxRecoveryWaitMs);
  }

  /** Called when the store has not answered in time. */
  async #onStall(): Promise<void> {
    const batch = this.#batchInFlight;
    // This process may have been starved of CPU time. In that case, the response has already
    // arrived, and only the timer fired first.
    await yieldToEventLoop();
    if (this.#batchInFlight !== batch || this.#isTransferring()) return;
    const ms = this.#storeTimeoutMs;
    this.#health.markFailing(`The store has not responded for ${ms} ms.`, ms);
    markAbandoned(this.#batchInFlight);
    this.#queue.rejectOverdue(this.#maxRecoveryWaitMs);
  }
}
