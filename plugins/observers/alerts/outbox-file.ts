// The outbox file: pending alerts and the IDs of alerts that were already accepted. Lines are
// appended. The file is rewritten when most lines are obsolete. A line that a crash truncated is
// skipped.
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { BatchQueue } from "tollgate/plugin";
import type { Alert } from "./alert.ts";

/** An alert that is pending for one receiver. */
export interface QueuedAlert {
  readonly receiver: string;
  readonly alert: Alert;
}

export type OutboxLine =
  | { readonly sent: string }
  | { readonly queued: QueuedAlert }
  /** The receiver accepted the alert, or delivery was abandoned. */
  | { readonly done: { readonly receiver: string; readonly id: string } };

interface PendingWrite {
  readonly text: string;
  readonly done: PromiseWithResolvers<void>;
}

export interface OutboxState {
  readonly sentIds: readonly string[];
  readonly queued: readonly QueuedAlert[];
}

/** Number of obsolete lines below which the file is not rewritten. */
const MIN_LINES_TO_COMPACT = 1_000;

export class OutboxFile {
  readonly #path: string;
  #file: FileHandle | undefined;
  #lines = 0;
  /** Lines that are added during a write are written together. */
  readonly #writes = new BatchQueue<PendingWrite>({ deliver: (batch) => this.#write(batch) });
  readonly #state: () => OutboxState;
  #closed = false;

  /** @param state Returns the state with which a compacted file starts. */
  constructor(path: string, state: () => OutboxState) {
    this.#path = path;
    this.#state = state;
  }

  /** Reads the file and rewrites it without obsolete lines. */
  load(most: number): OutboxState {
    const seen = new Set<string>();
    const letters = new Map<string, QueuedAlert>();
    for (const text of readLines(this.#path)) {
      const line = parseLine(text);
      if (!line) continue;
      if ("sent" in line) seen.add(line.sent);
      else if ("done" in line) letters.delete(deliveryKey(line.done));
      else
        letters.set(
          deliveryKey({ receiver: line.queued.receiver, id: line.queued.alert.id }),
          line.queued,
        );
    }
    const kept = { sentIds: [...seen].slice(-most), queued: [...letters.values()] };
    this.#compact(kept);
    return kept;
  }

  /** Resolves when the lines are on disk. Rejects after `close`, which is final. */
  append(lines: readonly OutboxLine[]): Promise<void> {
    if (this.#closed) return Promise.reject(new Error("The queue of alerts is closed."));
    const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
    const done = Promise.withResolvers<void>();
    this.#lines += lines.length;
    this.#writes.push({ text, done });
    return done.promise;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#writes.drain();
    await this.#file?.close();
    this.#file = undefined;
  }

  async #write(batch: readonly PendingWrite[]): Promise<void> {
    try {
      const { sentIds, queued } = this.#state();
      if (this.#lines > MIN_LINES_TO_COMPACT + 2 * (sentIds.length + queued.length)) {
        await this.#file?.close();
        this.#file = undefined;
        this.#compact({ sentIds, queued });
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

  #compact({ sentIds, queued }: OutboxState): void {
    const lines: OutboxLine[] = [
      ...sentIds.map((id) => ({ sent: id })),
      ...queued.map(({ receiver, alert }) => ({ queued: { receiver, alert } })),
    ];
    const beside = `${this.#path}.new`;
    const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
    writeFileSync(beside, text, { mode: 0o600, flush: true });
    renameSync(beside, this.#path);
    this.#lines = lines.length;
  }
}

const deliveryKey = ({ receiver, id }: { receiver: string; id: string }): string =>
  `${receiver}\n${id}`;

function readLines(path: string): readonly string[] {
  try {
    return readFileSync(path, "utf8").split("\n");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

function parseLine(text: string): OutboxLine | undefined {
  if (text === "") return undefined;
  try {
    return JSON.parse(text) as OutboxLine;
  } catch {
    return undefined;
  }
}
