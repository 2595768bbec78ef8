// The door to the store: everything that is written goes through one queue, in batches.
//
// Group commit, self-clocking: what was queued while the last batch was being made durable is the next batch. One
// batch is in flight, nothing lingers; under load batches grow, alone a command goes at once.
// A rejected batch did not happen. Commands that cannot be obeyed are told so one by one; after any other rejection
// settles are tried again until they land, and reserves, which somebody waits for, are refused after half a second.
//
// A store that says nothing is another matter than one that says no: a starved core, a disk that is busy with others'
// writes and a checkpoint keep a commit for a second or two, and a request refused for that is lost to its client, while
// one that waits is only late. So silence is borne for five seconds (most clients allow a minute or more to the first
// byte); after that everybody is refused at once until the store is heard of again. A reserve that lands after it was
// refused is voided: nothing was sent for it.
import { setTimeout as sleep } from "node:timers/promises";
import { fail } from "../../model/error.ts";
import type { Price } from "../../model/facts.ts";
import { priceHash } from "../../money/price.ts";
import {
  hint,
  impossible,
  isNew,
  said,
  tooLate,
  unavailable,
  type QueuedCommand,
} from "./queued-command.ts";
import type {
  StoreCommand,
  KeyRecord,
  Reserve,
  Settle,
  Store,
  Verdict,
} from "../../plugin/store.ts";

type Stamped<T> = T & { at: number };
type Told<D extends StoreCommand["do"]> = Extract<StoreCommand, { do: D }>;

export interface LedgerQueue {
  /** Barrier B1: resolved means durable. The price is the row behind the hash that the command pins. */
  reserve(command: Stamped<Reserve>, price?: Price): Promise<Verdict>;
  /** Barrier B2. It waits as long as it takes; how long a client waits for it (B3) is the caller's. */
  settle(command: Stamped<Settle>, prices?: readonly Price[]): Promise<void>;
  /** Best effort: the last one before each batch. */
  progress(command: Told<"progress">): void;
  adjust(command: Told<"adjust">): Promise<void>;
  key(record: KeyRecord): Promise<void>;
  /** Everything that was asked for before is durable. */
  flush(): Promise<void>;
  /** Takes nothing new, and gives what is under way this long. */
  close(withinMs?: number): Promise<void>;
  /** False: the store does not take anything now, and new calls are refused. */
  readonly healthy: boolean;
  readonly trouble: string | undefined;
}

export interface LedgerOptions {
  now?: () => number;
  /** When trouble begins (with its reason) and when it is over. */
  tell?: (trouble: string | undefined) => void;
  /** How long a store may be silent. */
  patienceMs?: number;
}

const PATIENCE_MS = 5_000;
/** How long a reserve waits for a store that says no to change its mind. */
const HEAL_MS = 500;

/** Commands in one batch, and reserves in the queue. */
const MOST_IN_BATCH = 1_024;
const MOST_WAITING = 20_000;
const PAUSE_MS = { first: 20, last: 1_000 };
const ALIVE_MS = 15_000;

/** What all sockets that are ready now ask for goes together; when there is one, this takes no time. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export function createLedger(
  store: Pick<Store, "apply" | "reach">,
  { now = Date.now, tell = () => {}, patienceMs = PATIENCE_MS }: LedgerOptions = {},
): LedgerQueue {
  const healMs = Math.min(HEAL_MS, patienceMs);
  let queue: QueuedCommand[] = [];
  const heard = new Map<string, Told<"progress">>();
  const pinned = new Set<string>();
  /** Refused after a batch with them was rejected. A store whose answer was lost on its way may have them all the same. */
  const doubtful: string[] = [];
  let pumping = false;
  let trouble: { message: string; since: number } | undefined;
  let pauseMs = 0;
  let closed = false;
  let ended = false;

  const beat =
    store.reach === "fleet" ? setInterval(() => push(hint(alive())), ALIVE_MS).unref() : undefined;

  const alive = (): StoreCommand => ({ do: "alive", at: now() });
  /** Whoever asks for no verdict need not look at it. */
  const put = <T extends Verdict | void = Verdict>(command: StoreCommand): Promise<T> =>
    new Promise((resolve, reject) =>
      push({
        command,
        resolve: resolve as (verdict: Verdict) => void,
        reject,
        since: performance.now(),
        again: true,
      }),
    );

  /** The row behind a hash, before the first row that names it. */
  function pin(hash: string, price: Price, at: number): void {
    if (pinned.has(hash)) return;
    pinned.add(hash);
    void put({ do: "price", at, hash, price }).catch(() => pinned.delete(hash));
  }

  function push(waiting: QueuedCommand): void {
    queue.push(waiting);
    wake();
  }

  function wake(): void {
    if (pumping) return;
    pumping = true;
    void pump();
  }

  async function pump(): Promise<void> {
    while (!idle())
      if (trouble) await recover();
      else {
        await turn();
        await send(heard.size === 0 ? taken() : [...progress(), ...taken()]);
      }
    pumping = false;
  }

  const idle = (): boolean => ended || (queue.length === 0 && heard.size === 0 && !trouble);

  /** The next batch: mostly all that waits. */
  function taken(): QueuedCommand[] {
    if (queue.length > MOST_IN_BATCH) return queue.splice(0, MOST_IN_BATCH);
    const all = queue;
    queue = [];
    return all;
  }

  function progress(): QueuedCommand[] {
    const told = [...heard.values()].map(hint);
    heard.clear();
    return told;
  }

  /** What must land goes before what may be refused; then the store is asked whether it takes new calls. */
  async function recover(): Promise<void> {
    await sleep(pauseMs, undefined, { ref: false });
    refuseLate();
    const [must, may] = [[] as QueuedCommand[], [] as QueuedCommand[]];
    for (const one of queue) (isNew(one.command) ? may : must).push(one);
    const batch = must.splice(0, MOST_IN_BATCH);
    queue = [...must, ...may];
    if (batch.length > 0) await send(batch);
    const error = (await attempt([hint(alive())])) ?? (await takeBack());
    health(error === undefined ? undefined : said(error));
  }

  /** One by one: mostly it is not there, and a batch with such a one did not happen. */
  async function takeBack(): Promise<unknown> {
    for (let name = doubtful.at(-1); name !== undefined; name = doubtful.at(-1)) {
      const error = await attempt([hint(tooLate(name, now()))]);
      if (error !== undefined && !impossible(error)) return error;
      doubtful.pop();
    }
    return undefined;
  }

  /** Undefined: it is done. */
  async function attempt(batch: readonly QueuedCommand[]): Promise<unknown> {
    let waiting = true;
    const slow = setInterval(async () => {
      // Was it we who did not listen? Then its answer lies there, and timers only came first.
      await turn();
      if (waiting) stalled(batch);
    }, patienceMs);
    try {
      const verdicts = await store.apply(batch.map(({ command }) => command));
      for (let i = 0; i < batch.length; i++) landed(batch[i]!, verdicts[i]!);
      return undefined;
    } catch (error) {
      return error ?? new Error("rejected");
    } finally {
      waiting = false;
      clearInterval(slow);
    }
  }

  async function send(batch: readonly QueuedCommand[]): Promise<void> {
    const recovering = trouble !== undefined;
    const error = await attempt(batch);
    if (error === undefined) {
      if (!recovering) health(undefined);
    } else if (!impossible(error)) rejected(batch, error);
    else if (batch.length === 1) batch[0]!.reject(error);
    else await halved(batch);
  }

  /**
   * One of them cannot be obeyed, and the others get what they asked for: half of them with what is left of it, so that finding
   * it costs its neighbours a few commits and not one each.
   */
  async function halved(batch: readonly QueuedCommand[]): Promise<void> {
    const waiting = [batch.slice(batch.length >> 1), batch.slice(0, batch.length >> 1)];
    for (let half = waiting.pop(); half !== undefined; half = waiting.pop()) {
      const error = await attempt(half);
      if (error === undefined) continue;
      if (!impossible(error)) return rejected([half, ...waiting.toReversed()].flat(), error);
      if (half.length === 1) half[0]!.reject(error);
      else waiting.push(half.slice(half.length >> 1), half.slice(0, half.length >> 1));
    }
  }

  function landed({ command, resolve, abandoned }: QueuedCommand, verdict: Verdict): void {
    resolve(verdict);
    if (abandoned && verdict.ok && command.do === "reserve")
      push({ ...hint(tooLate(command.attempt, now())), again: true });
  }

  function rejected(batch: readonly QueuedCommand[], error: unknown): void {
    health(said(error));
    for (const one of batch) {
      one.tried = true;
      if (one.abandoned && one.command.do === "reserve") doubtful.push(one.command.attempt);
    }
    queue.unshift(...batch.filter(({ again, abandoned }) => again && !abandoned));
    refuseLate();
  }

  /** The store takes its time. Reserves in the batch may still land, so they are only given up. */
  function stalled(batch: readonly QueuedCommand[]): void {
    health(`The store has not answered for ${patienceMs} ms.`, patienceMs);
    for (const waiting of batch)
      if (waiting.command.do === "reserve") {
        waiting.abandoned = true;
        waiting.reject(unavailable());
      }
    refuseLate();
  }

  function refuseLate(): void {
    const late = performance.now() - healMs;
    queue = queue.filter(({ command, since, reject, tried }) => {
      if (command.do !== "reserve" || since > late) return true;
      if (tried) doubtful.push(command.attempt);
      reject(unavailable());
      return false;
    });
  }

  function health(message: string | undefined, forMs = 0): void {
    const before = trouble;
    pauseMs = message === undefined ? 0 : Math.min(PAUSE_MS.last, pauseMs * 2 || PAUSE_MS.first);
    trouble =
      message === undefined
        ? undefined
        : { message, since: before?.since ?? performance.now() - forMs };
    if ((before === undefined) !== (trouble === undefined)) tell(message);
  }

  return {
    reserve(command, price) {
      if (
        closed ||
        queue.length >= MOST_WAITING ||
        (trouble && performance.now() - trouble.since > healMs)
      )
        return Promise.reject(unavailable());
      if (price && command.price !== null) pin(command.price, price, command.at);
      return put(command);
    },
    settle(command, prices) {
      if (prices) for (const price of prices) pin(priceHash(price), price, command.at);
      if (heard.size > 0) heard.delete(command.attempt);
      return put<void>(command);
    },
    progress(command) {
      heard.set(command.attempt, command);
      wake();
    },
    adjust: async (command) => void (await put(command)),
    key: async (key) => void (await put({ do: "key", at: now(), key })),
    flush: async () => void (await put(alive())),
    async close(withinMs = 10_000) {
      closed = true;
      clearInterval(beat);
      const stop = new AbortController();
      const late = sleep(withinMs, "late", { signal: stop.signal, ref: false }).catch(() => "done");
      const flushed = put(alive()).then(() => "done");
      if ((await Promise.race([flushed, late])) === "late") {
        ended = true;
        const lost = queue.splice(0);
        for (const { reject } of lost) reject(unavailable());
        fail(
          "internal",
          `The ledger was left with ${lost.length} commands that it could not write.`,
        );
      }
      stop.abort();
    },
    get healthy() {
      return trouble === undefined;
    },
    get trouble() {
      return trouble?.message;
    },
  };
}
