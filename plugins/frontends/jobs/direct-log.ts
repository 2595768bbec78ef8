// Results of lines that the gateway sends itself. They are appended to an encrypted log as they
// arrive, so that they survive the process. Each run of a batch writes a separate log.
import { hkdfSync, randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import type { Fault } from "tollgate/plugin";
import { EventLogReader, EventLogWriter } from "./event-log.ts";
import type { BatchUsage, DirectLines, StoredBatch } from "./batch-record.ts";
import type { Owner } from "./owned-records.ts";
import type { Storage } from "./storage.ts";

/** Response to a line, or the error of a line that was not answered. */
export type DirectResult =
  | {
      readonly n: number;
      readonly status: number;
      readonly requestId: string;
      /** JSON text. */
      readonly body: string;
      readonly usage: BatchUsage;
      /** In billionths of a US dollar. */
      readonly costNano: string;
    }
  | { readonly n: number; readonly fault: Pick<Fault, "kind" | "message" | "code" | "param"> };

/** Name under which the key of the logs is encrypted. */
const keyName = (batch: string): string => `${batch}~logs`;
const logName = (batch: string, number: number): string => `${batch}~log${number}`;

/** Returns the encrypted key of the logs of a new batch. */
export const createLogKey = (storage: Storage, owner: Owner, batch: string): string =>
  storage.secrets.wrapKey(owner.name, keyName(batch), randomBytes(32));

/** The logs of one batch. */
export class DirectLogs {
  readonly #storage: Storage;
  readonly #batch: string;
  readonly #key: Uint8Array;

  constructor(storage: Storage, owner: Owner, batch: string, { key }: DirectLines) {
    this.#storage = storage;
    this.#batch = batch;
    this.#key = storage.secrets.unwrapKey(owner.name, keyName(batch), key);
  }

  #pathOf(number: number): string {
    return this.#storage.blobs.pathOf(logName(this.#batch, number));
  }

  /** Each log has a separate key, because its frames are numbered from 0. */
  #keyOf(number: number): Uint8Array {
    return new Uint8Array(hkdfSync("sha256", this.#key, "", `log ${number}`, 32));
  }

  create(number: number): Promise<EventLogWriter> {
    return EventLogWriter.create(this.#pathOf(number), this.#keyOf(number));
  }

  /** Yields all results. A log may be missing, or end within a result: a crash left it. */
  async *read(count: number): AsyncGenerator<DirectResult, void> {
    for (let number = 1; number <= count; number++) {
      const log = await this.#open(number);
      if (!log) continue;
      try {
        for (let lines = await log.next(); lines; lines = await log.next())
          for (const line of lines) yield JSON.parse(line) as DirectResult;
      } finally {
        await log.close();
      }
    }
  }

  async #open(number: number): Promise<EventLogReader | undefined> {
    try {
      return await EventLogReader.open(this.#pathOf(number), this.#keyOf(number));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      return undefined;
    }
  }
}

/** Deletes the logs of a batch that has ended. */
export async function deleteLogs(storage: Storage, { record, direct }: StoredBatch): Promise<void> {
  for (let number = 1; number <= (direct?.logs ?? 0); number++)
    await rm(storage.blobs.pathOf(logName(record.id, number)), { force: true });
}
