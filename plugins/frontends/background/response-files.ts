// The encrypted files of background responses. Each file has a separate key, which its record
// contains, encrypted for its owner.
import { randomBytes } from "node:crypto";
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { fail, type Context } from "tollgate/plugin";
import { EventLogReader, EventLogWriter, type LogPosition } from "../jobs/event-log.ts";
import { createFileSecrets, type FileSecrets } from "../jobs/file-secrets.ts";
import type { Owner } from "../jobs/owned-records.ts";

/** A new file, with its encrypted key for the record. */
export interface NewFile {
  readonly log: EventLogWriter;
  readonly key: string;
}

export class ResponseFiles {
  readonly #ctx: Context;
  readonly #dir: string | undefined;
  #secrets: FileSecrets | undefined;

  /** @param dir Folder that several gateways share. Default: a folder of this gateway. */
  constructor(ctx: Context, dir: string | undefined) {
    this.#ctx = ctx;
    this.#dir = dir;
  }

  /** Secrets of the IDs and keys. They are derived when they are used first. */
  get secrets(): FileSecrets {
    return (this.#secrets ??= createFileSecrets(this.#ctx.deriveSecret("background responses")));
  }

  /** Folder of the files. A folder of the operator may contain others. */
  get #folder(): string {
    return this.#dir === undefined ? this.#ctx.stateDir() : join(this.#dir, "responses");
  }

  #path(name: string): string {
    return join(this.#folder, name);
  }

  async create(owner: Owner, name: string, onWritten?: () => void): Promise<NewFile> {
    const key = randomBytes(32);
    const log = await EventLogWriter.create(this.#path(name), key, onWritten);
    return { log, key: this.secrets.wrapKey(owner.name, name, key) };
  }

  /**
   * Opens a file, at its begin or at a frame. Throws the error for the client if another gateway has
   * it.
   */
  async open(owner: Owner, name: string, key: string, at?: LogPosition): Promise<EventLogReader> {
    const secret = this.secrets.unwrapKey(owner.name, name, key);
    try {
      return await EventLogReader.open(this.#path(name), secret, at);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      return failElsewhere();
    }
  }

  async exists(name: string): Promise<boolean> {
    return (await stat(this.#path(name)).catch(() => undefined)) !== undefined;
  }

  async delete(name: string): Promise<void> {
    await rm(this.#path(name), { force: true }).catch(() => undefined);
  }

  /** Returns the names of files that were not changed since a time, in Unix milliseconds. */
  async *listOlder(than: number): AsyncGenerator<string, void> {
    for (const name of await readdir(this.#folder).catch(() => [])) {
      const found = await stat(this.#path(name)).catch(() => undefined);
      if (found?.isFile() && found.mtimeMs <= than) yield name;
    }
  }
}

const failElsewhere = (): never =>
  fail(
    "unavailable",
    "Another gateway stores this response. To share responses, set background.dir of the frontend to a folder that all gateways use.",
    { code: "response_elsewhere" },
  );
