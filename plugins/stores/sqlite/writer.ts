// The one writer: it owns the file, keeps the book in memory, and makes one commit of each batch.
// After an error of the disk it never goes on with the same handle: it opens anew and reads what is really there.
import {
  faultOf,
  type AccountRecord,
  type AuditedCommand,
  type AuditEnd,
  type AuditEntry,
  type KeyRecord,
  type Limit,
  type LimitCount,
  type LimitCrossing,
  type PageRequest,
  type Price,
  type ResultPage,
} from "tollgate/plugin";
import { audit, audited } from "./audited.ts";
import { createBallast } from "./ballast.ts";
import { erase } from "./erasing.ts";
import type { Folded, SumsRow } from "./fold.ts";
import type { Leftovers } from "./leftovers.ts";
import { clear, discard, layReady, replace, shrink, sweep, type Swept } from "./pruning.ts";
import { BUSY, lock } from "./lock.ts";
import { Session, type Opened, type Settings } from "./session.ts";
import { createUnpacker, told, type Line, type Verdicts } from "./wire.ts";

/** Of `relaxed`: how long what was acknowledged may wait for its commit. */
const RELAXED_MS = 20;
const FULL = 13;

export class Writer {
  readonly opened: Opened;
  readonly #settings: Settings;
  readonly #owner: string;
  readonly #held: ReturnType<typeof lock>;
  readonly #ballast: ReturnType<typeof createBallast>;
  readonly #unpack = createUnpacker();
  #session: Session | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Why what was acknowledged could not be committed. */
  #lost: unknown;

  /** Throws when another process has the file, or when it cannot be what it should be. */
  constructor(settings: Settings, owner: string) {
    this.#settings = settings;
    this.#owner = owner;
    this.#held = lock(settings.file);
    this.#ballast = createBallast(`${settings.file}.ballast`, settings.ballastMb);
    try {
      this.opened = this.#current().opened;
      this.#commit();
    } catch (error) {
      this.#abandon();
      this.#held.release();
      throw error;
    }
  }

  key(digest: string): KeyRecord | undefined {
    return this.#current().lookups.key(digest);
  }

  price(hash: string): Price | undefined {
    return this.#current().lookups.price(hash);
  }

  keys(page?: PageRequest): ResultPage<KeyRecord> {
    return this.#current().lookups.keys(page);
  }

  accounts(page?: PageRequest): ResultPage<AccountRecord> {
    return this.#current().lookups.accounts(page);
  }

  counted(limits: readonly Limit[], at: number): readonly LimitCount[] {
    return this.#current().counted(limits, at);
  }

  /** When the oldest row was written. */
  oldest(): number | undefined {
    const first =
      "SELECT since FROM segment WHERE last > coalesce((SELECT last FROM base), 0) ORDER BY id LIMIT 1";
    return this.#current().db.prepare(first).get()?.["since"] as number | undefined;
  }

  apply(text: string): Verdicts {
    // First of all: what was told of numbers holds, whatever becomes of the batch.
    const batch = this.#unpack(text);
    // A sign of life is also the question whether new calls are taken.
    if (!this.#ballast.ready() && batch.some((c) => c.do === "reserve" || c.do === "alive"))
      throw new Error(
        `There is no room left for ${this.#settings.file}. Calls under way are written down.`,
      );
    if (this.#lost) {
      const error = this.#lost;
      this.#lost = undefined;
      throw new Error("The last moments could not be written down.", { cause: error });
    }
    try {
      return this.#once(batch);
    } catch (error) {
      const code = (error as { errcode?: number }).errcode;
      if (faultOf(error) && this.#session?.db.isTransaction) this.#commitSoon();
      if (faultOf(error) || code === BUSY) throw error;
      this.#abandon();
      if (code === FULL) {
        this.#ballast.release();
        throw error;
      }
      // Whether the commit happened is not known: on a new handle the batch happens now, or turns out to be a repeat.
      return this.#once(batch);
    }
  }

  untold(): readonly LimitCrossing[] {
    return this.#current().untold();
  }

  heardOf(crossings: readonly LimitCrossing[]): void {
    this.#step((session) => session.heardOf(crossings));
  }

  /** Takes these words out. How many there were, and which. */
  erase(hashes: readonly string[], at: number): readonly string[] {
    return this.#step((session) => erase(session, hashes, at));
  }

  /** What an operator does, or how that ended: durable when it returns. */
  audit(said: AuditEntry | AuditEnd): void {
    this.#step((session) => audit(session, said));
  }

  audited(page?: PageRequest): ResultPage<AuditedCommand> {
    return audited(this.#current().db, page);
  }

  /** One of those that follow, and how long it has kept the others waiting. */
  step(
    method: "discard" | "layReady" | "replace" | "sweep" | "clear" | "shrink",
    ...args: readonly unknown[]
  ): { value: unknown; ms: number } {
    const began = performance.now();
    const value = (this[method] as (...args: readonly unknown[]) => unknown)(...args);
    return { value, ms: performance.now() - began };
  }

  discard(): void {
    this.#step(discard);
  }

  layReady(sums: readonly SumsRow[]): void {
    this.#step((session) => layReady(session, sums));
  }

  replace(folded: Omit<Folded, "sums">, at: number): boolean {
    return this.#step((session) => replace(session, folded, at));
  }

  sweep(): Swept {
    return this.#step(sweep);
  }

  clear(leftovers: Leftovers, edge: number): Swept {
    return this.#step((session) => clear(session, leftovers, edge));
  }

  shrink(): Swept {
    return this.#step(shrink);
  }

  close(): void {
    try {
      this.#commit();
    } finally {
      this.#abandon();
      this.#held.release();
    }
  }

  /** Between batches. After an error of the disk, the next one begins on a new handle. */
  #step<T>(work: (session: Session) => T): T {
    try {
      const result = work(this.#current());
      this.#commit();
      return result;
    } catch (error) {
      if (!faultOf(error)) this.#abandon();
      throw error;
    }
  }

  #current(): Session {
    return (this.#session ??= new Session(this.#settings, this.#owner));
  }

  #once(batch: readonly Line[]): Verdicts {
    const verdicts = this.#current().apply(batch);
    if (this.#settings.durability === "relaxed")
      // A key that was handed out, or taken back, stays so.
      if (batch.some((c) => c.do === "key" || c.do === "account" || c.do === "price"))
        this.#commit();
      else this.#commitSoon();
    return told(batch, verdicts);
  }

  #commit(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#session?.db.isTransaction) this.#session.db.exec("COMMIT");
  }

  /** Later, for `relaxed`. What fails now was acknowledged already: the next batch hears of it. */
  #commitSoon(): void {
    this.#timer ??= setTimeout(() => {
      try {
        this.#commit();
      } catch (error) {
        this.#lost = error;
        this.#abandon();
      }
    }, RELAXED_MS);
  }

  #abandon(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    try {
      this.#session?.db.close();
    } catch {
      // It is the handle that is broken.
    }
    this.#session = undefined;
  }
}
