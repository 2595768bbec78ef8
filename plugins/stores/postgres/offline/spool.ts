// Keeps commands on this node's disk: the last minute of acknowledged batches, and the batches that
// were not sent to the database. Acknowledged batches survive the process. Unsent batches also
// survive a power failure. The next process in the same folder replays what is missing.
import { join } from "node:path";
import type { StoreCommand } from "tollgate/plugin";
import { fromJson, toJson } from "tollgate/store";
import { systemDisk, type Disk, type DiskFile } from "../disk.ts";

type Batch = readonly StoreCommand[];

/** An acknowledged batch, with the epoch of the node and the batch number. */
export interface SpooledBatch {
  readonly epoch: number;
  readonly n: number;
  readonly batch: Batch;
}

/** The spool that an earlier process left. */
export interface LeftSpool {
  readonly instance: string;
  readonly acknowledged: readonly SpooledBatch[];
  readonly unsent: readonly Batch[];
}

/**
 * Maximum age and size of a segment file. The current and two earlier segments contain at least the
 * last minute, unless they reach the maximum size first.
 */
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

  /**
   * @param troubled Called once if acknowledged batches cannot be written. The node then continues
   *   without them.
   */
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

  /**
   * Appends an acknowledged batch. The batch is passed to the operating system, so it is kept if
   * this process ends.
   */
  async appendAcknowledged(batch: SpooledBatch): Promise<void> {
    if (this.#isBroken) return;
    try {
      const segment = await this.#rotateSegment();
      const line = Buffer.from(`${toJson(batch)}\n`);
      await segment.file.write(line);
      segment.bytes += line.length;
    } catch (error) {
      this.#isBroken = true;
      this.#onError(error);
    }
  }

  /** Appends an unsent batch and syncs it to disk. */
  async appendUnsent(batch: Batch): Promise<void> {
    const file = (this.#unsentFile ??= await this.#disk.append(join(this.#dir, "unsent")));
    await file.write(`${toJson(batch)}\n`);
    await file.datasync();
  }

  /** Clears the unsent batches after all were sent. */
  async clearUnsent(): Promise<void> {
    await this.#unsentFile?.truncate(0);
  }

  /**
   * @param whole Whether everything was sent. The spool folder is then deleted.
   */
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

/** Reads the spools that earlier processes left in this folder. */
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
    const acknowledged: SpooledBatch[] = [];
    for (const file of numbered)
      acknowledged.push(...parseLines<SpooledBatch>(await disk.read(join(folder, name, file))));
    const unsent = files.includes("unsent")
      ? parseLines<Batch>(await disk.read(join(folder, name, "unsent")))
      : [];
    left.push({ instance: of, acknowledged, unsent });
  }
  return left;
}

/** Deletes a spool after it was replayed. */
export const deleteSpool = (
  folder: string,
  { instance }: LeftSpool,
  disk: Disk = systemDisk,
): Promise<void> => disk.remove(join(folder, `spool-${encodeURIComponent(instance)}`));

/**
 * Parses lines of JSON. If a crash truncated a line, it is the last line and was never
 * acknowledged, so it is skipped.
 */
function parseLines<T>(text: string): T[] {
  return text.split("\n").flatMap((line) => {
    try {
      return line === "" ? [] : [fromJson<T>(line)];
    } catch {
      return [];
    }
  });
}
