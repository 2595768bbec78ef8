// Serializes all writes of this node. It uses the fast path if possible, the slow path if
// necessary, and the local disk while the database is unreachable.
import type {
  InstanceInfo,
  StoreCommand,
  StoreEvent,
  StoreInstance,
  CommandResult,
} from "tollgate/plugin";
import { checkCommand, mergeClaims } from "tollgate/store";
import { HeadroomCache } from "./write/headroom-cache.ts";
import { OfflineMode } from "./offline/offline-mode.ts";
import { markNodeLeft } from "./membership/heartbeat.ts";
import { DenialCache } from "./write/denial-cache.ts";
import { FullGroups } from "./write/full-groups.ts";
import type { NodePosition } from "./write/slow-path.ts";
import type { RunSql, PipelinedConnection } from "./connection/pipelined-connection.ts";
import type { SubmitContext } from "./write/batch-submit.ts";
import { resultsInOrder } from "./write/fast-path.ts";
import { applyFastPath } from "./write/fast-path-rounds.ts";
import { appendNotes, type NoteWrite } from "./audit/chain-note.ts";
import { resync } from "./resync.ts";
import type { BudgetLeases } from "./leases/budget-leases.ts";
import { LocalNode } from "./local-node.ts";
import {
  isUnavailable,
  failUnreachable,
  errorMessage,
  isResourceExhausted,
} from "./connection/errors.ts";
import { withRetry, createSerialQueue, type ConnectionFailure } from "./connection/retry.ts";
import type { Writer, WriterSettings } from "./writer-interface.ts";
import type { OwnCall } from "./rows/batch-plan.ts";
import { textArray } from "./connection/array-literal.ts";

// Reads the current labels of open calls, because a settle repeats them.
async function refreshLabels(
  sql: RunSql,
  schema: string,
  mine: ReadonlyMap<string, OwnCall>,
): Promise<void> {
  const attempts = [...mine].flatMap(([attempt, { row }]) =>
    Object.keys(row.labels).length > 0 ? [attempt] : [],
  );
  if (attempts.length === 0) return;
  const rows = await sql({
    text: `SELECT attempt, labels FROM ${schema}.entry WHERE attempt = ANY ($1::text[]) AND kind = 0 AND labels IS NOT NULL`,
    values: [textArray(attempts)],
  });
  for (const { attempt, labels } of rows) {
    const call = mine.get(attempt!);
    if (call) call.row.labels = JSON.parse(labels!) as typeof call.row.labels;
  }
}

// Copies commands, because the caller may change its objects later. Supports only plain data, and
// takes a fifth of the time of `structuredClone`.
/** Copies JSON-like objects and arrays deeply. Other values are returned unchanged. */
export function clonePlain<T>(of: T): T {
  if (typeof of !== "object" || of === null) return of;
  if (Array.isArray(of)) return of.map(clonePlain) as T;
  const copy = { ...of } as Record<string, unknown>;
  for (const name in copy) {
    const part = copy[name];
    if (typeof part === "object" && part !== null) copy[name] = clonePlain(part);
  }
  return copy as T;
}

// Records that the disk of the database is full. A database with a full disk still accepts
// heartbeats, so a heartbeat does not prove that rows are accepted. Without this record, the host
// would alternate between accepting and rejecting calls.
/**
 * Time in milliseconds for which the record is used. It is also the maximum delay until calls are
 * accepted again after space is freed.
 */
const LATCH_MS = 2_000;
class DiskFullLatch {
  #lastError: unknown;
  #until = 0;

  /** Records the error of a failed write. */
  recordError(error: unknown): void {
    if (!isResourceExhausted(error) || error === this.#lastError) return;
    this.#lastError = error;
    this.#until = performance.now() + LATCH_MS;
  }

  /** Throws the recorded error while the record is used. */
  throwIfFull(): void {
    if (performance.now() < this.#until) throw this.#lastError;
  }
}

/**
 * Interval in milliseconds at which a gateway checks whether the database has responded recently.
 * If not, it sends a heartbeat.
 */
const HEARTBEAT_INTERVAL_MS = 1_200;
/**
 * Maximum age of a response that makes a heartbeat unnecessary. Together with the interval, changes
 * by other gateways are visible within 1.5 s.
 */
const FRESH_MS = 250;
/** Interval in milliseconds at which a node in offline mode tries to reach the database. */
const RECONNECT_INTERVAL_MS = 250;
/**
 * Silence of the database after which a node enters offline mode, in milliseconds. Applies only if
 * offline mode accepts new calls.
 */
const OFFLINE_AFTER_MS = 2_000;

export const createWriter = (line: PipelinedConnection, settings: WriterSettings): Writer =>
  new InstanceWriter(line, settings);

class InstanceWriter implements Writer {
  readonly #connection: PipelinedConnection;
  readonly #settings: WriterSettings;
  readonly #node: LocalNode;
  readonly #serialQueue = createSerialQueue();
  #heartbeatTimer: NodeJS.Timeout | undefined;
  #instanceFacts: InstanceInfo | undefined;
  /** Undefined until the store is opened, and if the config requires no leases. */
  #budgetLeases: BudgetLeases | undefined;
  #offlineMode: OfflineMode | undefined;
  readonly #diskFull = new DiskFullLatch();
  readonly #denialCache: DenialCache | undefined;
  readonly #fullGroups: FullGroups | undefined;
  readonly #headroomCache = new HeadroomCache();

  constructor(line: PipelinedConnection, settings: WriterSettings) {
    this.#connection = line;
    this.#settings = settings;
    this.#node = new LocalNode(line, settings);
    if (settings.clock === "command") return;
    this.#denialCache = new DenialCache();
    this.#fullGroups = new FullGroups();
  }

  /** Creates offline mode, with budget leases if the config requires them. */
  async #prepareOfflineMode(): Promise<void> {
    const { spoolDir, schema, leaseThreshold = 0 } = this.#settings;
    const offline = spoolDir ? this.#settings.offline : undefined;
    const usesLeases = offline !== undefined || leaseThreshold > 0;
    const module = usesLeases ? await import("./leases/index.ts") : undefined;
    this.#budgetLeases ??=
      module &&
      new module.BudgetLeases({
        schema,
        offline,
        threshold: leaseThreshold,
        onThresholdsReached: (crossings) => this.#node.reportThresholds(crossings),
      });
    const newCalls = module && offline && new module.LeasedCalls(offline, this.#budgetLeases!);
    if (spoolDir) this.#offlineMode ??= new OfflineMode(newCalls, () => this.#node.spool);
  }

  get isOffline(): boolean {
    return this.#offlineMode?.isActive ?? false;
  }

  async open(
    { instance, info }: StoreInstance,
    hear: (news: StoreEvent) => void,
  ): Promise<{ epoch: number; recovered: number }> {
    await this.#prepareOfflineMode();
    // A node whose lease has expired cannot write before it is opened again.
    return this.#serialQueue(() =>
      this.#runWithRetry(async (sql) => {
        this.#node.serverState.onEvent = (news) => {
          // An erasure also changes keys. It may have removed labels that this node would write
          // again for its open calls.
          if (news.type === "keys_changed" && this.#node.openCalls.size > 0)
            void this.refreshLabels().catch(() => undefined);
          hear(news);
        };
        this.#instanceFacts = info ?? this.#instanceFacts;
        if (this.#node.position?.instance !== instance || !(await this.#node.resume(sql, info))) {
          await this.#node.replayLeftSpools(sql, instance);
          await this.#node.join(sql, instance, info);
        }
        const before = await this.#node.recoverDeadCalls(sql, false);
        clearInterval(this.#heartbeatTimer);
        this.#heartbeatTimer = setInterval(
          () => this.#onHeartbeatTimer(),
          HEARTBEAT_INTERVAL_MS,
        ).unref();
        return { epoch: this.#node.position!.epoch, recovered: before };
      }),
    );
  }

  apply(batch: readonly StoreCommand[]): Promise<readonly CommandResult[]> {
    batch.forEach(checkCommand);
    if (this.isOffline) return this.#applyOffline(batch);
    return this.#serialQueue(() =>
      this.#runSynced(
        (sql) => this.#writeBatch(sql, batch),
        (trouble) => this.#onWriteFailure(trouble, batch),
      ),
    ).catch((error: unknown) => {
      this.#diskFull.recordError(error);
      if (!this.isOffline) throw error;
      return this.#applyOffline(batch);
    });
  }

  appendNotes(noting: NoteWrite): Promise<void> {
    return this.#serialQueue(() =>
      this.#runSynced(async (sql) => {
        const { n, head } = await appendNotes(
          sql,
          this.#settings.schema,
          this.#node.requirePosition(),
          noting,
        );
        Object.assign(this.#node.position!, { n, head });
      }),
    );
  }

  refreshLabels = (): Promise<void> =>
    this.#serialQueue(() =>
      this.#runSynced((sql) => refreshLabels(sql, this.#settings.schema, this.#node.openCalls)),
    );

  sql: RunSql = (question) => this.#serialQueue(() => this.#runSynced((sql) => sql(question)));

  databaseNow = (at: number): number =>
    this.#settings.clock === "command" ? at : this.#node.serverState.databaseNow();

  async close(isGraceful: boolean): Promise<void> {
    clearInterval(this.#heartbeatTimer);
    const me = this.#node.position;
    const hasLeft =
      isGraceful && me && this.#connection.isConnected && !this.isOffline
        ? await this.#serialQueue(() => this.#leave(me)).then(
            () => true,
            () => false,
          )
        : false;
    this.#node.position = undefined;
    await this.#node.spool?.close(hasLeft);
    await this.#connection.close();
  }

  async #leave({ instance, epoch }: NodePosition): Promise<void> {
    const sql = await this.#node.replayBeforeLeave(await this.#connection.connect());
    await this.#budgetLeases?.returnAll(sql, instance);
    await markNodeLeft(sql, this.#settings.schema, epoch);
  }

  async #writeBatch(
    sql: RunSql,
    batch: readonly StoreCommand[],
  ): Promise<readonly CommandResult[]> {
    const alive = batch.findLast((c) => c.do === "heartbeat");
    if (alive) {
      this.#instanceFacts = alive.info ?? this.#instanceFacts;
      await this.#node.recoverDeadCalls(sql, true, alive);
    }
    if (batch.every((c) => c.do === "heartbeat")) {
      this.#diskFull.throwIfFull();
      return resultsInOrder(batch, new Map());
    }
    const commands = clonePlain(batch);
    const verdicts =
      (await applyFastPath(sql, this.#submitContext, commands)) ??
      (await this.#applySlowPath(sql, commands));
    await this.#node.saveForReplay(commands, verdicts);
    return verdicts;
  }

  /**
   * Applies a batch on the slow path. The slow path sees only meters, so this node first returns
   * its budget leases on the claimed meters.
   */
  async #applySlowPath(
    sql: RunSql,
    batch: readonly StoreCommand[],
  ): Promise<readonly CommandResult[]> {
    this.#denialCache?.clear();
    const slices = this.#budgetLeases;
    if (slices?.hasAny) {
      const claims = batch.flatMap((c) =>
        c.do === "reserve" ? mergeClaims(c.claims, this.databaseNow(c.at), NO_METERS) : [],
      );
      const mine = slices.leasedIds(claims.map(({ meter }) => meter.id));
      if (mine.length > 0)
        await slices.returnLeases(sql, this.#node.requirePosition().instance, mine);
    }
    const results = await this.#node.applySlowPath(sql, batch);
    this.#fullGroups?.record(batch, results, this.databaseNow(0));
    return results;
  }

  #runSynced<T>(
    work: (sql: RunSql) => Promise<T>,
    away?: (trouble: ConnectionFailure) => void,
  ): Promise<T> {
    return this.#runWithRetry(async (sql) => {
      await this.#node.catchUp(sql);
      return work(sql);
    }, away);
  }

  /**
   * @param onConnectionFailure Called for each connection that breaks during the work.
   */
  #runWithRetry<T>(
    work: (sql: RunSql) => Promise<T>,
    onConnectionFailure = ({ count, reason }: ConnectionFailure) => {
      if (count === 2) this.#node.serverState.onEvent({ type: "unavailable", reason });
    },
  ): Promise<T> {
    return this.isOffline
      ? this.#offlineMode!.failUnavailable()
      : withRetry(this.#connection, work, onConnectionFailure);
  }

  /**
   * With a local disk, the node does not wait for its database. It enters offline mode and decides
   * the commands that it can.
   */
  #onWriteFailure(
    { count, elapsedMs, reason }: ConnectionFailure,
    batch: readonly StoreCommand[],
  ): void {
    if (!this.#offlineMode) {
      if (count === 2) this.#node.serverState.onEvent({ type: "unavailable", reason });
    } else if (count >= 2 || (this.#offlineMode.acceptsNewCalls && elapsedMs > OFFLINE_AFTER_MS)) {
      this.#enterOfflineMode(reason, batch);
      failUnreachable(new Error(reason));
    }
  }

  #enterOfflineMode(why: string, batch: readonly StoreCommand[] = []): void {
    this.#offlineMode!.begin(batch);
    this.#node.serverState.onEvent({
      type: this.#offlineMode!.acceptsNewCalls ? "offline_started" : "unavailable",
      reason: why,
    });
    this.#scheduleReconnect();
  }

  #applyOffline(batch: readonly StoreCommand[]): Promise<readonly CommandResult[]> {
    return this.#offlineMode!.decide(clonePlain(batch), (at) => this.databaseNow(at));
  }

  /** Retries until the database is reachable and has all offline batches. */
  #scheduleReconnect(): void {
    setTimeout(async () => {
      await this.#serialQueue(() => this.#leaveOfflineMode()).catch(() =>
        this.#connection.disconnect(),
      );
      if (this.isOffline && this.#node.position) this.#scheduleReconnect();
    }, RECONNECT_INTERVAL_MS).unref();
  }

  async #leaveOfflineMode(): Promise<void> {
    const sql = await this.#connection.connect();
    const commands = await resync(sql, this.#node, this.#offlineMode!, this.#instanceFacts);
    // If offline mode rejected all new calls, there may be no change to report.
    if (this.#offlineMode!.acceptsNewCalls || commands > 0)
      this.#node.serverState.onEvent({ type: "offline_ended", commands });
  }

  get #submitContext(): SubmitContext {
    return {
      connection: this.#connection,
      settings: this.#settings,
      node: this.#node,
      budgetLeases: this.#budgetLeases,
      denialCache: this.#denialCache,
      fullGroups: this.#fullGroups,
      headroomCache: this.#headroomCache,
      limitTime: this.databaseNow,
    };
  }

  /**
   * Sends a heartbeat if needed, so that this node sees changes by other gateways even if it writes
   * nothing.
   */
  #onHeartbeatTimer(): void {
    if (!this.#node.position || this.isOffline) return;
    const quiet = performance.now() - this.#node.lastWriteAt >= FRESH_MS;
    if (!quiet && !this.#budgetLeases && !this.#node.needsPeerCheck) return;
    const looked = this.#serialQueue(async () => {
      if (!this.#node.position || this.isOffline) return;
      const sql = await this.#connection.connect();
      if (quiet) await this.#node.heartbeat(sql);
      if (this.#node.needsPeerCheck) await this.#node.checkPeers(sql);
      await this.#budgetLeases?.maintain(
        sql,
        this.#node.position.instance,
        this.#connection.connectionCount,
      );
    });
    const began = performance.now();
    looked.catch((error: unknown) => {
      if (!isUnavailable(error)) return;
      this.#connection.disconnect();
      // The next batch repairs a broken connection. If the database does not respond, the next
      // batch would wait too.
      const silent = performance.now() - began > OFFLINE_AFTER_MS;
      if (silent && this.#offlineMode?.acceptsNewCalls && this.#node.position && !this.isOffline)
        this.#enterOfflineMode(errorMessage(error));
    });
  }
}

const NO_METERS: ReadonlyMap<string, never> = new Map<string, never>();
