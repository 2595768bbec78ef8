// The ledger in one SQLite file: Node's own SQLite, WAL, one thread that writes, and one that reads, once something is to be read.
// Importing this file starts nothing; threads start when the store is opened.
import { join, resolve } from "node:path";
import { defineStore } from "tollgate/plugin";
import type { Commands, Store } from "tollgate/plugin";
import { IdleWindow } from "./sqlite/sums/idle-window.ts";
import { pendingMigration } from "./sqlite/data/schema.ts";
import { readDiskUsage } from "./sqlite/disk-usage.ts";
import { createLedgerMaintenance } from "./sqlite/threads/ledger-maintenance.ts";
import { createTransfer } from "./sqlite/threads/transfer.ts";
import { startThread, type WorkerThread } from "./sqlite/threads/thread.ts";
import type { ChainHead } from "./sqlite/data/chain.ts";
import {
  createBatchEncoder,
  decodeResults,
  type BatchEncoder,
  type EncodedResults,
} from "./sqlite/data/batch-codec.ts";
import type { ThreadRole } from "./sqlite/threads/thread-entry.ts";
import type { OpenResult, SqliteSettings } from "./sqlite/write/ledger-session.ts";

export default defineStore({
  api: 1,
  name: "sqlite",
  stability: "stable",
  summary: "One file on one machine; survives kill -9, and a power cut too",
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
          "What an acknowledged row survives. power: a power cut. process: kill -9. relaxed: neither, for up to 20 ms",
      },
      ballast_mb: {
        type: "integer",
        minimum: 0,
        maximum: 1_024,
        default: 16,
        description: "Room kept so that calls under way can be written down when the disk is full",
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

/** Before anything is done; with both versions, and how large the file is. */
const MIGRATION_MESSAGE =
  "the ledger is brought to this version's form before it is opened, each step in one transaction";

type SqliteStore = Store &
  Commands & {
    close(): Promise<void>;
    /** The threads end where they stand, as in a crash. For tests of what is left then. */
    kill(): Promise<void>;
  };

/** How an operator finds out whether the ledger was cut. */
const createChainCommands = (
  head: () => Promise<ChainHead>,
  holds: (hash: unknown) => Promise<boolean>,
): NonNullable<Commands["commands"]> => ({
  head: {
    summary: "The ledger's newest hash: note it down, and the ledger cannot be shortened unseen",
    writes: false,
    run: async () => ({ ...(await head()) }),
  },
  holds: {
    summary: "Whether a hash that was noted down is still part of the ledger",
    writes: false,
    input: {
      type: "object",
      additionalProperties: false,
      required: ["hash"],
      properties: { hash: { type: "string", description: "From `head`" } },
    },
    run: ({ hash }) => holds(hash),
  },
});

function createSqliteStore(settings: () => SqliteSettings): SqliteStore {
  let owner: string | undefined;
  let writerThread: Promise<RunningThread> | undefined;
  let readerThread: Promise<RunningThread> | undefined;
  const longTasks = createLongTaskThreads(settings);

  /** The thread, started when there is none or when it died: it opens the file anew, and nothing that was durable is lost. */
  const writer = (): Promise<RunningThread> =>
    (writerThread = restartIfDead(writerThread, () => {
      if (owner === undefined) throw new Error("The store is not open.");
      return startRole({ role: "writer", settings: settings(), instance: owner });
    }));
  const reader = (): Promise<RunningThread> =>
    (readerThread = restartIfDead(readerThread, async () => {
      await writer();
      return startRole({ role: "reader", settings: settings() });
    }));

  const callWriter =
    <A extends readonly unknown[], T>(method: string) =>
    async (...args: A): Promise<T> =>
      (await writer()).thread.call<T>(method, ...args);
  const callReader =
    <A extends readonly unknown[], T>(method: string) =>
    async (...args: A): Promise<T> =>
      (await reader()).thread.call<T>(method, ...args);

  const callReaderCancelable = async <T>(
    method: string,
    signal: AbortSignal | undefined,
    ...args: readonly unknown[]
  ): Promise<T> => (await reader()).thread.callCancelable<T>(signal, method, ...args);

  const idleWindow = new IdleWindow(async () => (await reader()).thread.call("sum"));

  return {
    async open({ instance }) {
      if (owner !== undefined && owner !== instance) await stop(true);
      owner = instance;
      const { opened } = await writer();
      return opened!;
    },
    async apply(batch) {
      const running = await writer();
      idleWindow.addCommands(batch.length);
      const tell = async ({ thread, encoder }: RunningThread) =>
        decodeResults(batch, await thread.call<EncodedResults>("apply", encoder.encode(batch)));
      try {
        return await tell(running);
      } catch (error) {
        if (running.thread.isAlive || owner === undefined) throw error;
        // It died with the batch in its hands. Another one does it, or finds that it was done.
        return tell(await writer());
      }
    },
    findKey: callWriter("key"),
    findPrice: callWriter("price"),
    listKeys: callWriter("keys"),
    listAccounts: callWriter("accounts"),
    readLimits: callWriter("counted"),
    listEntries: (query, page, of) => callReaderCancelable("entries", of?.signal, query, page),
    sumEntries: (query, of) => callReaderCancelable("totals", of?.signal, query),
    audit: { begin: callWriter("audit"), end: callWriter("audit"), list: callWriter("audited") },
    verify: callReader("verify"),
    async readSize() {
      const oldest = callWriter<[], number | undefined>("oldest");
      const [room, oldestAt] = await Promise.all([readDiskUsage(settings().file), oldest()]);
      return { ...room, oldestAt };
    },
    thresholds: { listUndelivered: callWriter("untold"), markDelivered: callWriter("heardOf") },
    supportsHandoff: true,
    maintenance: createLedgerMaintenance({ withLongTasks: longTasks.with, writer, reader }),
    transfer: createTransfer(longTasks.start),
    commands: createChainCommands(
      callReader<[], ChainHead>("head"),
      callReader<[unknown], boolean>("holds"),
    ),
    close: () => stop(true),
    kill: () => stop(false),
  };

  async function stop(isGraceful: boolean): Promise<void> {
    idleWindow.stop();
    await longTasks.end();
    const threads = [
      await readerThread?.catch(() => undefined),
      await writerThread?.catch(() => undefined),
    ];
    owner = writerThread = readerThread = undefined;
    for (const running of threads)
      if (running?.thread.isAlive) await stopThread(running, isGraceful);
  }
}

async function stopThread({ thread }: RunningThread, goodbye: boolean): Promise<void> {
  if (goodbye) await thread.call("close").catch(() => undefined);
  await thread.kill();
}

/** Threads that are there while a ledger is copied or cut. */
function createLongTaskThreads(settings: () => SqliteSettings) {
  const activeThreads = new Set<WorkerThread>();
  async function begin(): Promise<WorkerThread> {
    const { thread } = await startRole({ role: "keeper", settings: { file: settings().file } });
    activeThreads.add(thread);
    return thread;
  }
  return {
    start: begin,
    async with<T>(work: (thread: WorkerThread) => Promise<T>): Promise<T> {
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

interface RunningThread {
  thread: WorkerThread;
  encoder: BatchEncoder;
  /** Of a writer. */
  opened: OpenResult | undefined;
}

async function restartIfDead(
  before: Promise<RunningThread> | undefined,
  again: () => Promise<RunningThread>,
): Promise<RunningThread> {
  const running = await before?.catch(() => undefined);
  return running?.thread.isAlive ? running : again();
}

async function startRole(role: ThreadRole): Promise<RunningThread> {
  const thread = startThread(role);
  try {
    return {
      thread,
      encoder: createBatchEncoder(),
      opened: await thread.call<OpenResult | undefined>("start"),
    };
  } catch (error) {
    await thread.kill();
    throw error;
  }
}
