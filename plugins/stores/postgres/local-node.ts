// The database state of this node: its row, its batch number, its chain head, and its open calls.
// After a broken connection, the actual state is read before any write.
import type { InstanceInfo, ThresholdReached, StoreCommand, CommandResult } from "tollgate/plugin";
import { sendHeartbeat, insertNode, type HeartbeatInfo } from "./membership/heartbeat.ts";
import type { OwnCall } from "./rows/batch-plan.ts";
import { recoverDeadCalls } from "./membership/reaper.ts";
import {
  parseBytea,
  applySlowPath,
  type SlowPathContext,
  type NodePosition,
  type SlowPathResult,
} from "./write/slow-path.ts";
import { PeerPositions } from "./membership/peer-positions.ts";
import type { RunSql, PipelinedConnection } from "./connection/pipelined-connection.ts";
import { replaySpool } from "./spool-replay.ts";
import { replayBatches, ReplayBuffer } from "./offline/replay-buffer.ts";
import { ServerState } from "./membership/server-state.ts";
import { deleteSpool, readLeftSpools, Spool } from "./offline/spool.ts";
import { PresentMembers } from "./write/present-members.ts";
import { TermsCache } from "./rows/call-terms.ts";
import { reachedThresholdsIn, returnDeadLeases } from "./membership/lease-returns.ts";
import { failFenced, isUnavailable, needsReread, errorMessage } from "./connection/errors.ts";
import type { WriterSettings } from "./writer-interface.ts";

export class LocalNode {
  readonly #connection: PipelinedConnection;
  readonly #settings: WriterSettings;
  readonly serverState = new ServerState();
  readonly openCalls = new Map<string, OwnCall>();
  readonly terms = new TermsCache();
  readonly members = new PresentMembers();
  position: { instance: string; epoch: number; n: number; head: Buffer } | undefined;
  /** A batch that was sent and is not confirmed, with the function to call if it was committed. */
  pendingBatch: { readonly head: Buffer; readonly done: () => void } | undefined;
  lastWriteAt = 0;
  readonly replayBuffer = new ReplayBuffer();
  /** Whether the database no longer has a row for this node. */
  isUnknownToDatabase = false;
  /** Acknowledged batches that must be sent again, because the database lost them. */
  readonly unsentBatches: (readonly StoreCommand[])[] = [];
  /** Number of the connection on which the state was last synchronized. */
  syncedConnection = 0;
  spool: Spool | undefined;
  readonly #peerPositions: PeerPositions;

  constructor(line: PipelinedConnection, of: WriterSettings) {
    this.#connection = line;
    this.#settings = of;
    this.#peerPositions = new PeerPositions(of.schema);
  }

  /**
   * Called before all other work. Reads the unknown state and sends lost batches to the database
   * again.
   */
  async catchUp(sql: RunSql): Promise<void> {
    await this.#ensureSynced(sql);
    if (this.unsentBatches.length > 0 && !this.isUnknownToDatabase) await this.replayUnsent(sql);
  }

  /**
   * Resumes the node. Returns false if its lease has expired or the database has no row for it.
   * Unsent batches are then sent under a new row.
   */
  async resume(sql: RunSql, about?: InstanceInfo): Promise<boolean> {
    await this.#ensureSynced(sql);
    if (this.isUnknownToDatabase || !(await this.heartbeat(sql, false, { info: about })))
      return false;
    await this.replayUnsent(sql);
    return true;
  }

  async #ensureSynced(sql: RunSql): Promise<void> {
    if (
      this.pendingBatch ||
      (this.position && this.syncedConnection !== this.#connection.connectionCount)
    )
      await this.syncPosition(sql);
    if (this.syncedConnection !== this.#connection.connectionCount) this.members.clear();
    this.syncedConnection = this.#connection.connectionCount;
  }

  /**
   * Sends lost batches to the database again before this node leaves. If that is impossible, they
   * stay on disk for the next process.
   */
  async replayBeforeLeave(sql: RunSql): Promise<RunSql> {
    await this.catchUp(sql);
    return this.isUnknownToDatabase ? failFenced() : sql;
  }

  /** Keeps two copies of an acknowledged batch: in memory and on this node's disk. */
  async saveForReplay(
    commands: readonly StoreCommand[],
    verdicts: readonly CommandResult[],
  ): Promise<void> {
    const { epoch, n } = this.requirePosition();
    const batch = this.replayBuffer.add(commands, verdicts, n);
    if (batch.length > 0) await this.spool?.appendAcknowledged({ epoch, n, batch });
  }

  /**
   * Reads this node's row after a new connection. The row shows whether the pending batch was
   * committed. It also shows whether the database was restored to an earlier state, without
   * acknowledged batches.
   */
  async syncPosition(sql: RunSql): Promise<void> {
    const me = this.requirePosition();
    const [row] = await sql({
      text: `SELECT n, head FROM ${this.#settings.schema}.node WHERE epoch = $1 AND id = $2`,
      values: [me.epoch, me.instance],
    });
    // The row was lost together with other data. This node is therefore fenced. It joins again and
    // then sends the batches that it has kept.
    if (!row) return void (this.isUnknownToDatabase = true);
    const before = me.n;
    const [n, head] = [Number(row["n"]), parseBytea(row["head"]!)];
    const pending = this.pendingBatch;
    this.pendingBatch = undefined;
    Object.assign(this.position!, { n, head });
    if (pending?.head.equals(head)) pending.done();
    if (n >= before) return;
    const { batches, whole } = this.replayBuffer.takeAfter(n);
    if (!whole)
      this.serverState.onEvent({
        type: "rows_lost",
        instance: me.instance,
        from: n + 1,
        to: before,
      });
    this.unsentBatches.push(...batches);
  }

  replayUnsent(sql: RunSql): Promise<void> {
    return replayBatches(this.unsentBatches, (facts) => this.applyAgain(sql, facts));
  }

  /** Applies commands that were acknowledged before. */
  async applyAgain(sql: RunSql, facts: readonly StoreCommand[]): Promise<readonly CommandResult[]> {
    const verdicts = await this.applySlowPath(sql, facts);
    this.reportThresholds(verdicts.flatMap((verdict) => (verdict.ok && verdict.thresholds) || []));
    await this.saveForReplay(facts, verdicts);
    return verdicts;
  }

  /** Reports thresholds that no client request waits for. */
  reportThresholds(crossings: readonly ThresholdReached[]): void {
    if (crossings.length > 0) this.serverState.onEvent({ type: "thresholds_reached", crossings });
  }

  /** Replays the spools that earlier processes left in this node's folder. */
  async replayLeftSpools(sql: RunSql, instance: string): Promise<void> {
    const { spoolDir, schema, leaseMs, disk } = this.#settings;
    if (!spoolDir) return;
    // The previous process may have had the same instance name.
    const own = this.spool?.instance === instance;
    const before = this.position;
    for (const left of await readLeftSpools(spoolDir(), own ? instance : "", disk)) {
      const as = (epoch: number) => {
        this.position = { instance: left.instance, epoch, n: 0, head: Buffer.alloc(0) };
        this.terms.invalidate();
        return (facts: readonly StoreCommand[]) => this.applySlowPath(sql, facts);
      };
      // If the replay fails, restore this node's own position.
      const commands = await replaySpool(sql, schema, left, { leaseMs, as }).finally(() => {
        this.position = before;
        this.terms.invalidate();
        if (!before) this.pendingBatch = undefined;
      });
      await deleteSpool(spoolDir(), left, disk);
      if (commands > 0)
        this.serverState.onEvent({ type: "spool_replayed", instance: left.instance, commands });
    }
    if (own) return;
    await this.spool?.close(false);
    const troubled = (error: unknown) =>
      this.serverState.onEvent({ type: "spool_failed", reason: errorMessage(error) });
    this.spool = new Spool(spoolDir(), instance, troubled, disk);
    await this.spool.open();
  }

  requirePosition(): NodePosition {
    if (!this.position) throw new Error("The store is not open.");
    return this.position;
  }

  async join(sql: RunSql, instance: string, about: unknown): Promise<void> {
    const epoch = await insertNode(
      sql,
      this.#settings.schema,
      instance,
      about,
      this.#settings.leaseMs,
    );
    this.openCalls.clear();
    this.terms.invalidate();
    this.pendingBatch = undefined;
    this.position = { instance, epoch, n: 0, head: Buffer.alloc(0) };
    if (this.isUnknownToDatabase)
      this.unsentBatches.push(...this.replayBuffer.takeAfter(-1).batches);
    this.replayBuffer.onNewNode();
    this.isUnknownToDatabase = false;
    await this.replayUnsent(sql);
  }

  async applySlowPath(
    sql: RunSql,
    batch: readonly StoreCommand[],
  ): Promise<readonly CommandResult[]> {
    const { schema, clock } = this.#settings;
    const means: SlowPathContext = {
      sql,
      schema,
      terms: this.terms,
      timeOverride: clock === "command" ? ({ at }) => at : undefined,
      onCommitting: (written) =>
        (this.pendingBatch = { head: written.head, done: () => this.onWritten(written) }),
    };
    try {
      const written = await applySlowPath(batch, this.requirePosition(), means);
      this.pendingBatch = undefined;
      this.onWritten(written);
      return written.results;
    } catch (error) {
      if (!isUnavailable(error)) this.pendingBatch = undefined;
      if (!needsReread(error)) throw error;
      this.terms.invalidate();
      throw Object.assign(new Error("Another gateway wrote the record first."), { code: "40001" });
    }
  }

  onWritten({ n, head, rows, booked, settledAttempts }: SlowPathResult): void {
    Object.assign(this.position!, { n, head });
    this.terms.markStored(booked);
    for (const row of rows)
      if (row.kind === "reserve") {
        this.openCalls.set(row.attempt, { row });
        this.members.record(row.meterAmounts);
      }
    for (const attempt of settledAttempts) this.openCalls.delete(attempt);
    this.lastWriteAt = performance.now();
  }

  observe(
    { versions, databaseTime }: { versions: string; databaseTime: number },
    tripMs: number,
  ): void {
    this.serverState.observeVersions(versions);
    if (this.#settings.clock === "database") this.serverState.observeClock(databaseTime, tripMs);
    this.lastWriteAt = performance.now();
  }

  /** Sends a heartbeat. Returns the dead nodes, or false if this node's own lease has expired. */
  async heartbeat(
    sql: RunSql,
    look = false,
    info?: HeartbeatInfo,
  ): Promise<readonly string[] | false> {
    const began = performance.now();
    const result = await sendHeartbeat(
      sql,
      this.#settings.schema,
      this.requirePosition().epoch,
      look,
      info,
    );
    if (result) this.observe(result, performance.now() - began);
    return result?.deadNodes ?? false;
  }

  /** Whether to check if the database has lost batches of other nodes. */
  get needsPeerCheck(): boolean {
    return this.#peerPositions.isDue(this.#connection.connectionCount);
  }

  async checkPeers(sql: RunSql): Promise<void> {
    for (const news of await this.#peerPositions.check(sql, this.requirePosition().epoch))
      this.serverState.onEvent(news);
  }

  /** Settles the open calls of dead nodes, and reports the instances they belonged to. */
  async recoverDeadCalls(sql: RunSql, tell: boolean, info?: HeartbeatInfo): Promise<number> {
    for (let many = 0; ;) {
      const dead = await this.heartbeat(sql, true, info);
      if (dead === false) return failFenced();
      if (many === 0)
        this.reportThresholds(
          reachedThresholdsIn(await returnDeadLeases(sql, this.#settings.schema)),
        );
      if (tell && many === 0) await this.checkPeers(sql);
      const calls = await recoverDeadCalls(
        sql,
        this.#settings.schema,
        dead,
        this.serverState.databaseNow(),
      );
      if (calls.commands.length === 0) return many;
      const verdicts = await this.applySlowPath(sql, calls.commands);
      this.reportThresholds(
        verdicts.flatMap((verdict) => (verdict.ok && verdict.thresholds) || []),
      );
      many += calls.commands.length;
      if (tell)
        for (const [instance, of] of calls.countByInstance)
          this.serverState.onEvent({ type: "calls_recovered", instance, calls: of });
    }
  }
}
