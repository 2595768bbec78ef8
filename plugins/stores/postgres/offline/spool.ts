// What this node was told, on its own disk: the last minute, and what the database has not been told. It survives the end of the process (the last minute),
// and that of the machine (what is not told). The next process in the same folder tells what is missing.
import { join } from "node:path";
import type { StoreCommand } from "tollgate/plugin";
import { fromJson, toJson } from "tollgate/store";
import { systemDisk, type Disk, type DiskFile } from "../disk.ts";

type Batch = readonly StoreCommand[];

/** A batch that was acknowledged, with the node's row and the number that it got there. */
export interface SpooledBatch {
  readonly epoch: number;
  readonly n: number;
  readonly batch: Batch;
}

/** What a process before has left. */
export interface LeftSpool {
  readonly instance: string;
  readonly acknowledged: readonly SpooledBatch[];
  readonly unsent: readonly Batch[];
}

/** One of its files holds so much; with two before it there is always a minute. */
const SEGMENT_MS = 30_000;
const SEGMENT_BYTES = 32 * 1024 * 1024;
const SEGMENTS = 3;
const REPLAY_PREFIX = "replay.";
const SPOOL_FOLDER = /^spool-(.+)$/;

export class Spool {
  readonly instance: string;
  readonly #dir: string;
  readonly #disk: Disk;
  readonly #onError: (error: unknown) => void;
  #replaySegment: { readonly file: DiskFile; readonly from: number; bytes: number } | undefined;
  #segment = 0;
  #unsentFile: DiskFile | undefined;
  #isBroken = false;

  /** `troubled` hears once when the last minute cannot be written: the node goes on without it. */
  constructor(
    folder: string,
    instance: string,
    troubled: (error: unknown) => void,
    disk: Disk = systemDisk,
  ) {
    this.instance = instance;
    this.#disk = disk;
    this.#dir = join(folder, `spool-${encodeURIComponent(instance)}`);
    this.#onError = troubled;
  }

  async open(): Promise<void> {
    await this.#disk.makeFolder(this.#dir);
  }

  /** Written to the system, which survives this process. */
  async appendAcknowledged(told: SpooledBatch): Promise<void> {
    if (this.#isBroken) return;
    try {
      const segment = await this.#rotateSegment();
      const line = Buffer.from(`${toJson(told)}\n`);
      await segment.file.write(line);
      segment.bytes += line.length;
    } catch (error) {
      this.#isBroken = true;
      this.#onError(error);
    }
  }

  /** Written to the disk. */
  async appendUnsent(batch: Batch): Promise<void> {
    const file = (this.#unsentFile ??= await this.#disk.append(join(this.#dir, "unsent")));
    await file.write(`${toJson(batch)}\n`);
    await file.datasync();
  }

  /** All of it is told. */
  async clearUnsent(): Promise<void> {
    await this.#unsentFile?.truncate(0);
  }

  /** `whole`: all is told, and nothing has to stay. */
  async close(whole: boolean): Promise<void> {
    await this.#replaySegment?.file.close();
    await this.#unsentFile?.close();
    this.#replaySegment = this.#unsentFile = undefined;
    if (whole) await this.#disk.remove(this.#dir);
  }

  async #rotateSegment() {
    const now = performance.now();
    const { from = -Infinity, bytes = 0 } = this.#replaySegment ?? {};
    if (this.#replaySegment && now - from < SEGMENT_MS && bytes < SEGMENT_BYTES)
      return this.#replaySegment;
    await this.#replaySegment?.file.close();
    const name = (i: number) => join(this.#dir, `${REPLAY_PREFIX}${i}`);
    const file = await this.#disk.append(name(++this.#segment));
    await this.#disk.remove(name(this.#segment - SEGMENTS));
    return (this.#replaySegment = { file, from: now, bytes: 0 });
  }
}

/** Of processes before this one, in this folder. */
export async function readLeftSpools(
  folder: string,
  instance: string,
  disk: Disk = systemDisk,
): Promise<readonly LeftSpool[]> {
  const left: LeftSpool[] = [];
  for (const name of await disk.list(folder)) {
    const of = decodeURIComponent(SPOOL_FOLDER.exec(name)?.[1] ?? "");
    if (of === "" || of === instance) continue;
    const files = await disk.list(join(folder, name));
    const numbered = files
      .filter((file) => file.startsWith(REPLAY_PREFIX))
      .toSorted(
        (a, b) => Number(a.slice(REPLAY_PREFIX.length)) - Number(b.slice(REPLAY_PREFIX.length)),
      );
    const told: SpooledBatch[] = [];
    for (const file of numbered)
      told.push(...parseLines<SpooledBatch>(await disk.read(join(folder, name, file))));
    const unsent = files.includes("unsent")
      ? parseLines<Batch>(await disk.read(join(folder, name, "unsent")))
      : [];
    left.push({ instance: of, acknowledged: told, unsent });
  }
  return left;
}

/** It has been told. */
export const deleteSpool = (
  folder: string,
  { instance }: LeftSpool,
  disk: Disk = systemDisk,
): Promise<void> => disk.remove(join(folder, `spool-${encodeURIComponent(instance)}`));

/** A line that a crash cut short is the last one, and was never acknowledged. */
function parseLines<T>(text: string): T[] {
  return text.split("\n").flatMap((line) => {
    try {
      return line === "" ? [] : [fromJson<T>(line)];
    } catch {
      return [];
    }
  });
}
