// All rows go to the store through one queue, in batches.
//
// A rejected batch did not happen. Commands that cannot be obeyed are refused one by one; after any other rejection
// settles are tried again until they land, and reserves, for which a client waits, are refused after half a second.
//
// A store that is silent is another matter than one that rejects: a starved core, a disk that is busy with others'
// writes and a checkpoint keep a commit for a second or two, and a request refused for that is lost to its client, while
// one that waits is only late. So silence is borne for five seconds (most clients allow a minute or more to the first
// byte); after that every new call is refused at once until the store is heard of again. A reserve that lands after it was
// refused is voided: nothing was sent for it.
import { setTimeout as sleep } from "node:timers/promises";
import { wallClock } from "../../lib/wall-clock.ts";
import { Batches, turn } from "../../lib/batches.ts";
import { fail, sayable } from "../../model/error.ts";
import type { Price } from "../../model/facts.ts";
import type { AccountRecord } from "../../plugin/account.ts";
import { priceHash } from "../../money/price.ts";
import type { KeyRecord } from "../../plugin/key.ts";
import type { StoreCommand, Reserve, Settle, Store, Verdict } from "../../plugin/store.ts";
import { CommandQueue } from "./command-queue.ts";
import { LedgerHealth } from "./ledger-health.ts";
import type { Stamped } from "../../walk/money/ledger.ts";
import type { CommandOf, LedgerOptions, LedgerQueue } from "./ledger.ts";
import {
  abandon,
  halves,
  hint,
  impossible,
  refusal,
  tooLate,
  unavailable,
  type QueuedCommand,
} from "./queued-command.ts";

const PATIENCE_MS = 5_000;
/** How long a reserve waits for a store that rejects to recover. */
const HEAL_MS = 500;

/** Reserves in the queue. */
const MOST_WAITING = 20_000;

export const createLedger = (
  store: Pick<Store, "apply" | "lease">,
  options: LedgerOptions = {},
): LedgerQueue => new BatchingLedger(store, options);

class BatchingLedger implements LedgerQueue {
  readonly #store: Pick<Store, "apply">;
  readonly #now: () => number;
  readonly #patienceMs: number;
  readonly #healMs: number;
  readonly #health: LedgerHealth;
  readonly #queue = new CommandQueue();
  readonly #batches = new Batches(
    () => this.#ended || (this.#queue.isEmpty && this.healthy),
    () => (this.healthy ? this.#next() : this.#recover()),
  );
  readonly #pinned = new Set<string>();
  readonly #beat: NodeJS.Timeout | undefined;
  readonly #about: LedgerOptions["about"];
  readonly #isMoving: () => boolean;
  /** The batch that the store has now. */
  #under: readonly QueuedCommand[] = [];
  #closed = false;
  #ended = false;
  #pause = new AbortController();

  constructor(
    store: Pick<Store, "apply" | "lease">,
    { now = wallClock, tell = () => {}, patienceMs = PATIENCE_MS, ...more }: LedgerOptions,
  ) {
    this.#about = more.about;
    this.#isMoving = more.isMoving ?? (() => false);
    this.#store = store;
    this.#now = now;
    this.#patienceMs = patienceMs;
    this.#healMs = Math.min(HEAL_MS, patienceMs);
    this.#health = new LedgerHealth(tell);
    if (store.lease)
      this.#beat = setInterval(() => this.#push(hint(this.#alive())), store.lease.beatMs).unref();
  }

  reserve(command: Stamped<Reserve>, price?: Price): Promise<Verdict> {
    if (this.#closed || this.#queue.length >= MOST_WAITING || this.#health.lasting() > this.#healMs)
      return Promise.reject(unavailable());
    if (price && command.price !== null) this.#pin(command.price, price, command.at);
    return this.#put(command);
  }

  settle(command: Stamped<Settle>, prices?: readonly Price[]): Promise<void> {
    if (prices) for (const price of prices) this.#pin(priceHash(price), price, command.at);
    this.#queue.settled(command.attempt);
    return this.#put<void>(command);
  }

  progress(command: CommandOf<"progress">): void {
    this.#queue.hear(command);
    this.#batches.wake();
  }

  async adjust(command: CommandOf<"adjust">): Promise<void> {
    await this.#put(command);
  }

  async key(key: KeyRecord): Promise<void> {
    await this.#put({ do: "key", at: this.#now(), key });
  }

  async account(account: AccountRecord): Promise<void> {
    await this.#put({ do: "account", at: this.#now(), account });
  }

  async flush(): Promise<void> {
    await this.#put(this.#alive());
  }

  away(why: string): void {
    this.#health.away(why, this.#patienceMs);
    abandon(this.#under);
    this.#queue.refuseLate(0);
    // It asks until the store answers.
    this.#batches.wake();
  }

  doubt(why: string): void {
    if (this.healthy) this.#health.bad(why);
    this.#batches.wake();
  }

  probe(): void {
    this.#pause.abort();
  }

  async close(withinMs = 10_000): Promise<void> {
    this.#closed = true;
    clearInterval(this.#beat);
    const stop = new AbortController();
    const late = sleep(withinMs, "late", { signal: stop.signal, ref: false }).catch(() => "done");
    const flushed = this.#put(this.#alive()).then(() => "done");
    if ((await Promise.race([flushed, late])) === "late") {
      this.#ended = true;
      const lost = this.#queue.refuseAll();
      fail("internal", `The ledger was left with ${lost} commands that it could not write.`);
    }
    stop.abort();
  }

  get healthy(): boolean {
    return this.#health.trouble === undefined;
  }

  get waiting(): number {
    return this.#queue.length;
  }

  get trouble(): string | undefined {
    return this.#health.trouble;
  }

  get isAway(): boolean {
    return this.#health.isAway;
  }

  #alive(): StoreCommand {
    const about = this.#about?.();
    return { do: "alive", at: this.#now(), ...(about && { about }) };
  }

  /** A caller that asks for no verdict need not look at it. */
  #put<T extends Verdict | void = Verdict>(command: StoreCommand): Promise<T> {
    return new Promise((resolve, reject) =>
      this.#push({
        command,
        resolve: resolve as (verdict: Verdict) => void,
        reject,
        since: performance.now(),
        again: true,
      }),
    );
  }

  #push(waiting: QueuedCommand): void {
    this.#queue.push(waiting);
    this.#batches.wake();
  }

  /** The row behind a hash, before the first row that names it. */
  #pin(hash: string, price: Price, at: number): void {
    if (this.#pinned.has(hash)) return;
    this.#pinned.add(hash);
    void this.#put({ do: "price", at, hash, price }).catch(() => this.#pinned.delete(hash));
  }

  async #next(): Promise<void> {
    await turn();
    await this.#send(this.#queue.take());
  }

  /** Settles go before reserves, because a reserve may be refused. Then the store is asked whether it takes new calls. */
  async #recover(): Promise<void> {
    this.#pause = new AbortController();
    const { signal } = this.#pause;
    await sleep(this.#health.pauseMs, undefined, { ref: false, signal }).catch(() => {});
    this.#queue.refuseLate(this.#healMs);
    const batch = this.#queue.takeOwed();
    if (batch.length > 0) await this.#send(batch);
    const error = (await this.#attempt([hint(this.#alive())])) ?? (await this.#takeBack());
    if (error === undefined) this.#health.good();
    else this.#health.bad(sayable(error));
  }

  /** One by one: mostly it is not there, and a batch with such a one did not happen. */
  async #takeBack(): Promise<unknown> {
    const { doubtful } = this.#queue;
    for (let name = doubtful.at(-1); name !== undefined; name = doubtful.at(-1)) {
      const error = await this.#attempt([hint(tooLate(name, this.#now()))]);
      if (error !== undefined && !impossible(error)) return error;
      doubtful.pop();
    }
    return undefined;
  }

  /** Undefined: it is done. */
  async #attempt(batch: readonly QueuedCommand[]): Promise<unknown> {
    let waiting = true;
    this.#under = batch;
    const slow = setInterval(async () => {
      // This process itself may have been starved. Then the answer is there already, and the timer only fired first.
      await turn();
      if (waiting && !this.#isMoving()) this.#stalled();
    }, this.#patienceMs);
    try {
      const verdicts = await this.#store.apply(batch.map(({ command }) => command));
      for (let i = 0; i < batch.length; i++) this.#landed(batch[i]!, verdicts[i]!);
      return undefined;
    } catch (error) {
      return error ?? new Error("rejected");
    } finally {
      waiting = false;
      this.#under = [];
      clearInterval(slow);
    }
  }

  async #send(batch: readonly QueuedCommand[]): Promise<void> {
    const recovering = !this.healthy;
    const error = await this.#attempt(batch);
    if (error === undefined) {
      if (!recovering) this.#health.good();
    } else if (!impossible(error)) this.#rejected(batch, error);
    else if (batch.length === 1) batch[0]!.reject(refusal(error));
    else await this.#halved(batch);
  }

  /**
   * One of them cannot be obeyed, and the others get what they asked for: half of them with what is left of it, so that finding
   * it costs its neighbours a few commits and not one each.
   */
  async #halved(batch: readonly QueuedCommand[]): Promise<void> {
    const waiting = halves(batch);
    for (let half = waiting.pop(); half !== undefined; half = waiting.pop()) {
      const error = await this.#attempt(half);
      if (error === undefined) continue;
      if (!impossible(error)) return this.#rejected([half, ...waiting.toReversed()].flat(), error);
      if (half.length === 1) half[0]!.reject(refusal(error));
      else waiting.push(...halves(half));
    }
  }

  #landed({ command, resolve, abandoned }: QueuedCommand, verdict: Verdict): void {
    resolve(verdict);
    if (abandoned && verdict.ok && command.do === "reserve")
      this.#push({ ...hint(tooLate(command.attempt, this.#now())), again: true });
  }

  #rejected(batch: readonly QueuedCommand[], error: unknown): void {
    this.#health.bad(sayable(error));
    this.#queue.putBack(batch);
    this.#queue.refuseLate(this.#healMs);
  }

  /** The store takes its time. */
  #stalled(): void {
    const ms = this.#patienceMs;
    this.#health.bad(`The store has not answered for ${ms} ms.`, ms);
    abandon(this.#under);
    this.#queue.refuseLate(this.#healMs);
  }
}
