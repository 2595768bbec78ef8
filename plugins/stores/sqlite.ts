// Keeps the ledger in one SQLite file in WAL mode, using Node's built-in SQLite. One thread writes,
// and a second thread reads. The writing thread starts when the store is opened, and the reading
// thread with the first read. Importing this file starts no thread.
import { join, resolve, dirname } from "node:path";
import {
  defineStore,
  type CommandResult,
  type Commands,
  type JobStore,
  type Store,
  type StoreCommand,
  type StoreSize,
} from "tollgate/plugin";
import { IdleWindow } from "./sqlite/sums/rollups.ts";
import { pendingMigration } from "./sqlite/data/schema.ts";
import { createLedgerMaintenance, createTransfer } from "./sqlite/threads/ledger-maintenance.ts";
import {
  startThread,
  type CancelableArgs,
  type CancelableMethodOf,
  type MethodArgs,
  type MethodOf,
  type MethodResult,
  type WorkerThread,
} from "./sqlite/threads/thread.ts";
import type { ChainHead } from "./sqlite/data/chain.ts";
import { createBatchEncoder, decodeResults, type BatchEncoder } from "./sqlite/data/batch-codec.ts";
import type { LongTasks } from "./sqlite/threads/long-tasks.ts";
import type { ThreadRole } from "./sqlite/threads/thread-entry.ts";
import type { Reader } from "./sqlite/read/reader.ts";
import type { OpenResult, SqliteSettings } from "./sqlite/write/ledger-session.ts";
import type { Writer } from "./sqlite/write/writer.ts";
import { stat, statfs } from "node:fs/promises";

// Returns the disk usage of the file, including SQLite's auxiliary files, and the free space of its
// disk.
async function readDiskUsage(file: string): Promise<Pick<StoreSize, "bytes" | "freeBytes">> {
  const sizes = ["", "-wal", "-shm", ".ballast"].map((ending) =>
    stat(`${file}${ending}`).then(
      ({ size }) => size,
      () => 0,
    ),
  );
  const [disk, ...taken] = await Promise.all([statfs(dirname(file)), ...sizes]);
  return {
    bytes: taken.reduce((sum, size) => sum + size, 0),
    freeBytes: disk.bavail * disk.bsize,
  };
}

export default defineStore({
  api: 1,
  name: "sqlite",
  stability: "stable",
  summary: "Keep the ledger in one crash-safe file on one machine",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      file: {
        type: "string",
        minLength: 1,
        "x-path": true,
        description:
          "Database file, relative to gateway.yaml. Default: ledger.db in the folder of the store under state_dir",
      },
      durability: {
        enum: ["power", "process", "relaxed"],
        default: "power",
        description:
          "Durability of acknowledged rows. power: they survive a power failure. process: " +
          "they survive kill -9. relaxed: rows of the last 20 ms can be lost",
      },
      ballast_mb: {
        type: "integer",
        minimum: 0,
        maximum: 1_024,
        default: 16,
        description: "Disk space reserved so that open calls can be recorded when the disk is full",
      },
    },
  },
  setup(options, ctx) {
    const settings = (): SqliteSettings => ({
      file: options.file === undefined ? join(ctx.stateDir(), "ledger.db") : resolve(options.file),
      durability: options.durability,
      ballastMb: options.ballast_mb,
    });
    const store = createSqliteStore(settings);
    ctx.onDispose(() => store.close());
    return {
      ...store,
      async open(owner) {
        const migration = pendingMigration(settings().file);
        if (migration) ctx.log.info({ ...migration }, MIGRATION_MESSAGE);
        return store.open(owner);
      },
    };
  },
});

/** Logged before a migration starts, with both versions and the size of the file. */
const MIGRATION_MESSAGE = "ledger migration started";

type SqliteStore = Store &
  Commands & {
    close(): Promise<void>;
    /** Ends the threads immediately, as in a crash. Used to test recovery. */
    kill(): Promise<void>;
  };

/** Commands with which an operator can detect that the ledger was truncated. */
const createChainCommands = (
  head: () => Promise<ChainHead>,
  contains: (hash: string) => Promise<boolean>,
): NonNullable<Commands["commands"]> => ({
  head: {
    summary: "Show the ledger's latest hash, to detect truncation later",
    writes: false,
    run: async () => ({ ...(await head()) }),
  },
  contains: {
    summary: "Verify that a recorded hash is still part of the ledger",
    writes: false,
    input: {
      type: "object",
      additionalProperties: false,
      required: ["hash"],
      properties: { hash: { type: "string", description: "From `head`" } },
    },
    run: ({ hash }) => contains(String(hash)),
  },
});

function createSqliteStore(settings: () => SqliteSettings): SqliteStore {
  let owner: string | undefined;
  let writerThread: Promise<RunningThread<Writer>> | undefined;
  let readerThread: Promise<RunningThread<Reader>> | undefined;
  /** The writer thread when it has started. Batches then do not wait for its promise. */
  let startedWriter: RunningThread<Writer> | undefined;
  const longTasks = createLongTaskThreads(settings);

  /**
   * Returns the writer thread. It is started if there is none or if it died. A new thread opens the
   * file again, and no durable data is lost.
   */
  const writer = (): Promise<RunningThread<Writer>> =>
    (writerThread = restartIfDead(writerThread, async () => {
      if (owner === undefined) throw new Error("The store is not open.");
      return (startedWriter = await startRole<Writer>({
        role: "writer",
        settings: settings(),
        instance: owner,
      }));
    }));
  const applyWith = async (
    { thread, encoder }: RunningThread<Writer>,
    batch: readonly StoreCommand[],
  ): Promise<readonly CommandResult[]> =>
    decodeResults(batch, await thread.call("apply", encoder.encode(batch)));
  const reader = (): Promise<RunningThread<Reader>> =>
    (readerThread = restartIfDead(readerThread, async () => {
      await writer();
      return startRole<Reader>({ role: "reader", settings: settings() });
    }));

  const callWriter =
    <M extends MethodOf<Writer>>(method: M) =>
    async (...args: MethodArgs<Writer, M>): Promise<MethodResult<Writer, M>> =>
      (await writer()).thread.call(method, ...args);
  const callReader =
    <M extends MethodOf<Reader>>(method: M) =>
    async (...args: MethodArgs<Reader, M>): Promise<MethodResult<Reader, M>> =>
      (await reader()).thread.call(method, ...args);

  const callReaderCancelable = async <M extends CancelableMethodOf<Reader>>(
    method: M,
    signal: AbortSignal | undefined,
    ...args: CancelableArgs<Reader, M>
  ): Promise<MethodResult<Reader, M>> =>
    (await reader()).thread.callCancelable(signal, method, ...args);

  const idleWindow = new IdleWindow(async () => (await reader()).thread.call("updateRollups"));

  return {
    async open({ instance }) {
      if (owner !== undefined && owner !== instance) await stop(true);
      owner = instance;
      const { opened } = await writer();
      return opened!;
    },
    async apply(batch) {
      const running = startedWriter?.thread.isAlive ? startedWriter : await writer();
      idleWindow.addCommands(batch.length);
      try {
        return await applyWith(running, batch);
      } catch (error) {
        if (running.thread.isAlive || owner === undefined) throw error;
        // The thread died while it processed the batch. A new thread applies the batch or detects
        // that it was already applied.
        return applyWith(await writer(), batch);
      }
    },
    findKey: callWriter("findKey"),
    findPrice: callWriter("findPrice"),
    listKeys: callWriter("listKeys"),
    listAccounts: callWriter("listAccounts"),
    readLimits: callWriter("readLimits"),
    listEntries: (query, page, of) => callReaderCancelable("listEntries", of?.signal, query, page),
    sumEntries: (query, of) => callReaderCancelable("sumEntries", of?.signal, query),
    audit: {
      begin: callWriter("appendAudit"),
      end: callWriter("appendAudit"),
      list: callWriter("listAudit"),
    },
    jobs: keepDueTimes({
      put: callWriter("putJob"),
      find: callWriter("findJob"),
      list: callWriter("listJobs"),
      lease: callWriter("leaseJobs"),
      nextDueAt: callWriter("nextJobDueAt"),
      count: callWriter("countJobs"),
      delete: callWriter("deleteJob"),
    }),
    verify: callReader("verify"),
    async readSize() {
      const readOldestAt = callWriter("oldestAt");
      const [room, oldestAt] = await Promise.all([readDiskUsage(settings().file), readOldestAt()]);
      return { ...room, oldestAt };
    },
    thresholds: {
      listUndelivered: callWriter("listUndelivered"),
      markDelivered: callWriter("markDelivered"),
    },
    supportsHandoff: true,
    maintenance: createLedgerMaintenance({ withLongTasks: longTasks.with, writer, reader }),
    transfer: createTransfer(longTasks.start),
    commands: createChainCommands(callReader("head"), callReader("containsHash")),
    close: () => stop(true),
    kill: () => stop(false),
  };

  async function stop(isGraceful: boolean): Promise<void> {
    idleWindow.stop();
    await longTasks.end();
    const reading = await readerThread?.catch(() => undefined);
    const writing = await writerThread?.catch(() => undefined);
    owner = writerThread = readerThread = startedWriter = undefined;
    if (reading?.thread.isAlive) await stopThread(reading, isGraceful);
    if (writing?.thread.isAlive) await stopThread(writing, isGraceful);
  }
}

/**
 * Keeps the times at which jobs are due until a job changes, because no other process writes the
 * file. Engines that wait for their next job then cause no statements.
 */
export function keepDueTimes(jobs: JobStore): JobStore {
  const times = new Map<string, Promise<number | undefined>>();
  const changing =
    <A extends unknown[], R>(method: (...args: A) => Promise<R>) =>
    (...args: A): Promise<R> =>
      method(...args).finally(() => times.clear());
  return {
    ...jobs,
    put: changing(jobs.put),
    lease: changing(jobs.lease),
    delete: changing(jobs.delete),
    nextDueAt(kinds) {
      const name = kinds.join();
      let time = times.get(name);
      if (!time) {
        time = jobs.nextDueAt(kinds);
        times.set(name, time);
        time.catch(() => times.delete(name));
      }
      return time;
    },
  };
}

async function stopThread<S>({ thread }: RunningThread<S>, goodbye: boolean): Promise<void> {
  if (goodbye) await thread.close().catch(() => undefined);
  await thread.kill();
}

/** Manages threads for long tasks, such as backup and compaction. */
function createLongTaskThreads(settings: () => SqliteSettings) {
  const activeThreads = new Set<WorkerThread<LongTasks>>();
  async function begin(): Promise<WorkerThread<LongTasks>> {
    const { thread } = await startRole<LongTasks>({
      role: "long-tasks",
      settings: { file: settings().file },
    });
    activeThreads.add(thread);
    return thread;
  }
  return {
    start: begin,
    async with<T>(work: (thread: WorkerThread<LongTasks>) => Promise<T>): Promise<T> {
      const thread = await begin();
      try {
        return await work(thread);
      } finally {
        activeThreads.delete(thread);
        await thread.kill();
      }
    },
    end: () => Promise.all([...activeThreads].map((thread) => thread.kill())),
  };
}

interface RunningThread<S> {
  thread: WorkerThread<S>;
  encoder: BatchEncoder;
  /** Set only for a writer. */
  opened: OpenResult | undefined;
}

async function restartIfDead<S>(
  before: Promise<RunningThread<S>> | undefined,
  again: () => Promise<RunningThread<S>>,
): Promise<RunningThread<S>> {
  const running = await before?.catch(() => undefined);
  return running?.thread.isAlive ? running : again();
}

async function startRole<S>(role: ThreadRole): Promise<RunningThread<S>> {
  const thread = startThread<S>(role);
  try {
    return {
      thread,
      encoder: createBatchEncoder(),
      opened: await thread.start(),
    };
  } catch (error) {
    await thread.kill();
    throw error;
  }
}
