// The queue's file: what waits, and the ids of what was told before. Lines are added; when most of them are of the past the file is
// written anew. A line that a crash has cut is passed over.
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import type { Alert } from "./alert.ts";

/** One alert on its way to one receiver. */
export interface Letter {
  readonly to: string;
  readonly alert: Alert;
}

export type Line =
  | { readonly seen: string }
  | { readonly add: Letter }
  /** Taken by its receiver, or given up. */
  | { readonly over: { readonly to: string; readonly id: string } };

export interface Kept {
  readonly seen: readonly string[];
  readonly letters: readonly Letter[];
}

/** Fewer lines are not worth writing anew. */
const FEWEST = 1_000;

export class JournalFile {
  readonly #path: string;
  #file: FileHandle | undefined;
  #lines = 0;
  #waiting: { readonly text: string; readonly done: PromiseWithResolvers<void> }[] = [];
  #writing: Promise<void> | undefined;
  #closed = false;

  constructor(path: string) {
    this.#path = path;
  }

  /** What is there, with nothing in the file but that. */
  load(most: number): Kept {
    const seen = new Set<string>();
    const letters = new Map<string, Letter>();
    for (const text of linesOf(this.#path)) {
      const line = lineOf(text);
      if (!line) continue;
      if ("seen" in line) seen.add(line.seen);
      else if ("over" in line) letters.delete(keyOf(line.over));
      else letters.set(keyOf({ to: line.add.to, id: line.add.alert.id }), line.add);
    }
    const kept = { seen: [...seen].slice(-most), letters: [...letters.values()] };
    this.#rewrite(kept);
    return kept;
  }

  /** Resolves when it is on the disk. What is added meanwhile goes together. Rejects after `close`, which nothing opens again. */
  add(lines: readonly Line[], state: () => Kept): Promise<void> {
    if (this.#closed) return Promise.reject(new Error("The queue of alerts is closed."));
    const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
    const done = Promise.withResolvers<void>();
    this.#waiting.push({ text, done });
    this.#lines += lines.length;
    this.#writing ??= this.#write(state).finally(() => (this.#writing = undefined));
    return done.promise;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#writing;
    await this.#file?.close();
    this.#file = undefined;
  }

  async #write(state: () => Kept): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0);
      try {
        const { seen, letters } = state();
        if (this.#lines > FEWEST + 2 * (seen.length + letters.length)) {
          await this.#file?.close();
          this.#file = undefined;
          this.#rewrite({ seen, letters });
        } else {
          this.#file ??= await open(this.#path, "a", 0o600);
          await this.#file.appendFile(batch.map(({ text }) => text).join(""));
          await this.#file.datasync();
        }
        for (const { done } of batch) done.resolve();
      } catch (error) {
        for (const { done } of batch) done.reject(error);
      }
    }
  }

  #rewrite({ seen, letters }: Kept): void {
    const lines: Line[] = [
      ...seen.map((id) => ({ seen: id })),
      ...letters.map(({ to, alert }) => ({ add: { to, alert } })),
    ];
    const beside = `${this.#path}.new`;
    const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
    writeFileSync(beside, text, { mode: 0o600, flush: true });
    renameSync(beside, this.#path);
    this.#lines = lines.length;
  }
}

const keyOf = ({ to, id }: { to: string; id: string }): string => `${to}\n${id}`;

function linesOf(path: string): readonly string[] {
  try {
    return readFileSync(path, "utf8").split("\n");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

function lineOf(text: string): Line | undefined {
  if (text === "") return undefined;
  try {
    return JSON.parse(text) as Line;
  } catch {
    return undefined;
  }
}
