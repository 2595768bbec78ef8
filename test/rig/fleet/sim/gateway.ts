// A simulated gateway: the real ledger queue and store writer on a machine with its own disk. Its
// process can be killed, paused, and started again. The disk stays.
import { createLedgerQueue } from "../../../../src/runtime/ledger/ledger-queue.ts";
import type { LedgerQueue } from "../../../../src/runtime/ledger/ledger-queue-api.ts";
import { getFault } from "../../../../src/model/error.ts";
import type { StoreEvent } from "../../../../src/plugin/store/store-instance.ts";
import type { StoreCommand, CommandResult } from "../../../../src/plugin/store/store.ts";
import { connectionConfig } from "../../../../plugins/stores/postgres/connection/connection-config.ts";
import { PipelinedConnection } from "../../../../plugins/stores/postgres/connection/pipelined-connection.ts";
import { createWriter } from "../../../../plugins/stores/postgres/writer.ts";
import type {
  Writer,
  WriterSettings,
} from "../../../../plugins/stores/postgres/writer-interface.ts";
import { MemoryDisk } from "./disk.ts";
import { Link, Socket } from "./link.ts";
import type { Server } from "./server.ts";
import type { Process, VirtualTime } from "./virtual-time.ts";

export type GatewaySettings = Pick<
  WriterSettings,
  "leaseMs" | "offline" | "leaseThreshold" | "durability"
>;

const ADDRESS = {
  url: "postgres://tollgate@127.0.0.1:5432/tollgate",
  tls: "off",
  isPooled: true,
  readFile: async () => Buffer.alloc(0),
} as const;

export class Gateway {
  readonly machine: string;
  readonly disk = new MemoryDisk();
  readonly #of: GatewaySettings;
  readonly #server: Server;
  readonly #time: VirtualTime;
  #started = 0;
  process: Process;
  link: Link;
  writer: Writer | undefined;
  ledger: LedgerQueue | undefined;
  readonly news: StoreEvent[] = [];

  constructor(machine: string, of: GatewaySettings, server: Server, time: VirtualTime) {
    this.machine = machine;
    this.#of = of;
    this.#server = server;
    this.#time = time;
    this.process = { name: machine, alive: false, paused: false, clockOffset: 0 };
    this.link = new Link(this.process);
  }

  /** A new process. It opens its store as soon as the database responds. */
  start(): void {
    const { clockOffset } = this.process;
    const name = `${this.machine}.${++this.#started}`;
    this.process = { name, alive: true, paused: false, clockOffset };
    this.link = new Link(this.process);
    const { link } = this;
    this.#time.as(this.process, () => void this.#open(name, link));
  }

  async #open(instance: string, link: Link): Promise<void> {
    const line = new PipelinedConnection(async () => ({
      ...(await connectionConfig(ADDRESS, { statementMs: 2_000 })),
      stream: () => new Socket(this.#server, link) as never,
    }));
    const writer = createWriter(line, {
      schema: "tollgate",
      usesPreparedStatements: false,
      clock: "database",
      spoolDir: () => `/${this.machine}`,
      disk: this.disk,
      ...this.#of,
    });
    this.writer = writer;
    let ledger: LedgerQueue | undefined;
    const hear = (news: StoreEvent) => {
      this.news.push(news);
      if (news.type === "unavailable") ledger?.markUnreachable(news.reason);
    };
    const open = () => writer.open({ instance }, hear);
    for (;;)
      try {
        await open();
        break;
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 500));
      }
    // Like the host: a gateway whose lease expired reopens the store, and repeats the batch.
    const apply = async (batch: readonly StoreCommand[]): Promise<readonly CommandResult[]> => {
      try {
        return await writer.apply(batch);
      } catch (error) {
        if (getFault(error)?.code !== "fenced") throw error;
        await open();
        return writer.apply(batch);
      }
    };
    const lease = { durationMs: this.#of.leaseMs, heartbeatMs: Math.floor(this.#of.leaseMs / 3) };
    ledger = createLedgerQueue({ lease, apply });
    this.ledger = ledger;
  }

  get serves(): boolean {
    return this.process.alive && !this.process.paused && this.ledger !== undefined;
  }

  /** As SIGKILL does. */
  kill(): void {
    this.process.alive = false;
    this.ledger = this.writer = undefined;
    this.#server.killed(this.link);
  }

  /** A clean shutdown: all open calls have ended. */
  async stop(): Promise<void> {
    const { ledger, writer } = this;
    await this.#time.as(this.process, async () => {
      await ledger?.close();
      await writer?.close(true);
    });
    this.process.alive = false;
  }
}
