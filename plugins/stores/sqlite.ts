// The ledger in one SQLite file: Node's own SQLite, WAL, one thread that writes, and one that reads, once something is to be read.
// Importing this file starts nothing; threads start when the store is opened.
import { join, resolve } from "node:path";
import { defineStore } from "tollgate/plugin";
import type { Commands, Store } from "tollgate/plugin";
import { Lull } from "./sqlite/lull.ts";
import { migrationOf } from "./sqlite/schema.ts";
import { roomOf } from "./sqlite/room.ts";
import { keepingOf } from "./sqlite/keeping.ts";
import { movingOf } from "./sqlite/moving.ts";
import { startThread, type Thread } from "./sqlite/thread.ts";
import type { Head } from "./sqlite/chain.ts";
import { createPacker, heard, type Packer, type Verdicts } from "./sqlite/wire.ts";
import type { Role } from "./sqlite/ledger-thread.ts";
import type { Opened, Settings } from "./sqlite/session.ts";

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
    const settings = (): Settings => ({
      file: options.file === undefined ? join(ctx.stateDir(), "ledger.db") : resolve(options.file),
      durability: options.durability,
      ballastMb: options.ballast_mb,
    });
    const store = sqliteStore(settings);
    ctx.onDispose(() => store.close());
    return {
      ...store,
      async open(owner) {
        const migration = migrationOf(settings().file);
        if (migration) ctx.log.info({ ...migration }, MIGRATES);
        return store.open(owner);
      },
    };
  },
});

/** Before anything is done; with both versions, and how large the file is. */
const MIGRATES =
  "the ledger is brought to this version's form before it is opened, each step in one transaction";

type SqliteStore = Store &
  Commands & {
    close(): Promise<void>;
    /** The threads end where they stand, as in a crash. For tests of what is left then. */
    kill(): Promise<void>;
  };

/** How an operator finds out whether the ledger was cut. */
const chainCommands = (
  head: () => Promise<Head>,
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

function sqliteStore(settings: () => Settings): SqliteStore {
  let owner: string | undefined;
  let writing: Promise<Running> | undefined;
  let reading: Promise<Running> | undefined;
  const keepers = createKeepers(settings);

  /** The thread, started when there is none or when it died: it opens the file anew, and nothing that was durable is lost. */
  const writer = (): Promise<Running> =>
    (writing = revived(writing, () => {
      if (owner === undefined) throw new Error("The store is not open.");
      return start({ role: "writer", settings: settings(), instance: owner });
    }));
  const reader = (): Promise<Running> =>
    (reading = revived(reading, async () => {
      await writer();
      return start({ role: "reader", settings: settings() });
    }));

  const look =
    <A extends readonly unknown[], T>(method: string) =>
    async (...args: A): Promise<T> =>
      (await writer()).thread.call<T>(method, ...args);
  const read =
    <A extends readonly unknown[], T>(method: string) =>
    async (...args: A): Promise<T> =>
      (await reader()).thread.call<T>(method, ...args);

  const report = async <T>(
    method: string,
    signal: AbortSignal | undefined,
    ...args: readonly unknown[]
  ): Promise<T> => (await reader()).thread.asked<T>(signal, method, ...args);

  const lull = new Lull(async () => (await reader()).thread.call("sum"));

  return {
    async open({ instance }) {
      if (owner !== undefined && owner !== instance) await stop(true);
      owner = instance;
      const { opened } = await writer();
      return opened!;
    },
    async apply(batch) {
      const running = await writer();
      lull.written(batch.length);
      const tell = async ({ thread, packer }: Running) =>
        heard(batch, await thread.call<Verdicts>("apply", packer.pack(batch)));
      try {
        return await tell(running);
      } catch (error) {
        if (running.thread.alive || owner === undefined) throw error;
        // It died with the batch in its hands. Another one does it, or finds that it was done.
        return tell(await writer());
      }
    },
    key: look("key"),
    price: look("price"),
    keys: look("keys"),
    accounts: look("accounts"),
    counted: look("counted"),
    entries: (query, page, of) => report("entries", of?.signal, query, page),
    totals: (query, of) => report("totals", of?.signal, query),
    audit: { begin: look("audit"), end: look("audit"), list: look("audited") },
    verify: read("verify"),
    async size() {
      const oldest = look<[], number | undefined>("oldest");
      const [room, oldestAt] = await Promise.all([roomOf(settings().file), oldest()]);
      return { ...room, oldestAt };
    },
    crossings: { untold: look("untold"), told: look("heardOf") },
    handsOver: true,
    keeping: keepingOf({ keeper: keepers.with, writer, reader }),
    moving: movingOf(keepers.start),
    commands: chainCommands(read<[], Head>("head"), read<[unknown], boolean>("holds")),
    close: () => stop(true),
    kill: () => stop(false),
  };

  async function stop(goodbye: boolean): Promise<void> {
    lull.end();
    await keepers.end();
    const threads = [await reading?.catch(() => undefined), await writing?.catch(() => undefined)];
    owner = writing = reading = undefined;
    for (const running of threads) if (running?.thread.alive) await ended(running, goodbye);
  }
}

async function ended({ thread }: Running, goodbye: boolean): Promise<void> {
  if (goodbye) await thread.call("close").catch(() => undefined);
  await thread.kill();
}

/** Threads that are there while a ledger is copied or cut. */
function createKeepers(settings: () => Settings) {
  const under = new Set<Thread>();
  async function begin(): Promise<Thread> {
    const { thread } = await start({ role: "keeper", settings: { file: settings().file } });
    under.add(thread);
    return thread;
  }
  return {
    start: begin,
    async with<T>(work: (thread: Thread) => Promise<T>): Promise<T> {
      const thread = await begin();
      try {
        return await work(thread);
      } finally {
        under.delete(thread);
        await thread.kill();
      }
    },
    end: () => Promise.all([...under].map((thread) => thread.kill())),
  };
}

interface Running {
  thread: Thread;
  packer: Packer;
  /** Of a writer. */
  opened: Opened | undefined;
}

async function revived(
  before: Promise<Running> | undefined,
  again: () => Promise<Running>,
): Promise<Running> {
  const running = await before?.catch(() => undefined);
  return running?.thread.alive ? running : again();
}

async function start(role: Role): Promise<Running> {
  const thread = startThread(role);
  try {
    return {
      thread,
      packer: createPacker(),
      opened: await thread.call<Opened | undefined>("start"),
    };
  } catch (error) {
    await thread.kill();
    throw error;
  }
}
