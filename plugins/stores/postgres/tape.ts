// What this node was told, on its own disk: the ring of the last minute, and what it owes the database. It survives the end of the process (the ring),
// and that of the machine (what is owed). The next process in the same folder tells what is missing.
import { join } from "node:path";
import type { StoreCommand } from "tollgate/plugin";
import { fromJson, toJson } from "tollgate/store";
import { systemDisk, type Disk, type DiskFile } from "./disk.ts";

type Batch = readonly StoreCommand[];

/** A batch that was acknowledged, with the node's row and the number that it got there. */
export interface Told {
  readonly epoch: number;
  readonly n: number;
  readonly batch: Batch;
}

/** What a process before has left. */
export interface Left {
  readonly instance: string;
  readonly told: readonly Told[];
  readonly owed: readonly Batch[];
}

/** A file of the ring holds so much; with two before it there is always a minute. */
const SEGMENT_MS = 30_000;
const SEGMENT_BYTES = 32 * 1024 * 1024;
const SEGMENTS = 3;
const NAME = /^tape-(.+)$/;

export class Tape {
  readonly instance: string;
  readonly #dir: string;
  readonly #disk: Disk;
  readonly #troubled: (error: unknown) => void;
  #ring: { readonly file: DiskFile; readonly from: number; bytes: number } | undefined;
  #segment = 0;
  #owed: DiskFile | undefined;
  #broken = false;

  /** `troubled` hears once when the ring cannot be written: the node goes on without it. */
  constructor(
    folder: string,
    instance: string,
    troubled: (error: unknown) => void,
    disk: Disk = systemDisk,
  ) {
    this.instance = instance;
    this.#disk = disk;
    this.#dir = join(folder, `tape-${encodeURIComponent(instance)}`);
    this.#troubled = troubled;
  }

  async begin(): Promise<void> {
    await this.#disk.makeFolder(this.#dir);
  }

  /** Written to the system, which survives this process. */
  async told(told: Told): Promise<void> {
    if (this.#broken) return;
    try {
      const ring = await this.#turned();
      const line = Buffer.from(`${toJson(told)}\n`);
      await ring.file.write(line);
      ring.bytes += line.length;
    } catch (error) {
      this.#broken = true;
      this.#troubled(error);
    }
  }

  /** Written to the disk. */
  async owe(batch: Batch): Promise<void> {
    const file = (this.#owed ??= await this.#disk.append(join(this.#dir, "owed")));
    await file.write(`${toJson(batch)}\n`);
    await file.datasync();
  }

  /** All that was owed is told. */
  async paid(): Promise<void> {
    await this.#owed?.truncate(0);
  }

  /** `whole`: all is told, and nothing has to stay. */
  async end(whole: boolean): Promise<void> {
    await this.#ring?.file.close();
    await this.#owed?.close();
    this.#ring = this.#owed = undefined;
    if (whole) await this.#disk.remove(this.#dir);
  }

  async #turned() {
    const now = performance.now();
    const { from = -Infinity, bytes = 0 } = this.#ring ?? {};
    if (this.#ring && now - from < SEGMENT_MS && bytes < SEGMENT_BYTES) return this.#ring;
    await this.#ring?.file.close();
    const name = (i: number) => join(this.#dir, `ring.${i}`);
    const file = await this.#disk.append(name(++this.#segment));
    await this.#disk.remove(name(this.#segment - SEGMENTS));
    return (this.#ring = { file, from: now, bytes: 0 });
  }
}

/** Of processes before this one, in this folder. */
export async function leftIn(
  folder: string,
  instance: string,
  disk: Disk = systemDisk,
): Promise<readonly Left[]> {
  const left: Left[] = [];
  for (const name of await disk.list(folder)) {
    const of = decodeURIComponent(NAME.exec(name)?.[1] ?? "");
    if (of === "" || of === instance) continue;
    const files = await disk.list(join(folder, name));
    const numbered = files
      .filter((file) => file.startsWith("ring."))
      .toSorted((a, b) => Number(a.slice(5)) - Number(b.slice(5)));
    const told: Told[] = [];
    for (const file of numbered)
      told.push(...lines<Told>(await disk.read(join(folder, name, file))));
    const owed = files.includes("owed")
      ? lines<Batch>(await disk.read(join(folder, name, "owed")))
      : [];
    left.push({ instance: of, told, owed });
  }
  return left;
}

/** It has been told. */
export const forget = (
  folder: string,
  { instance }: Left,
  disk: Disk = systemDisk,
): Promise<void> => disk.remove(join(folder, `tape-${encodeURIComponent(instance)}`));

/** A line that a crash cut short is the last one, and was never acknowledged. */
function lines<T>(text: string): T[] {
  return text.split("\n").flatMap((line) => {
    try {
      return line === "" ? [] : [fromJson<T>(line)];
    } catch {
      return [];
    }
  });
}
