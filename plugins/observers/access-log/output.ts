// Writes lines to a file, which other programs may rename, or to the gateway's standard output. If
// the disk is full, lines are lost, but no request fails. Lost lines are counted.
import { constants, fstat, ftruncate, type Stats, write } from "node:fs";
import { access, type FileHandle, open, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type { RequestOutcome } from "tollgate/plugin";

const STDOUT = 1;
/**
 * Size up to which a pipe accepts a write atomically, so that no other writer's output splits a
 * line. POSIX guarantees a PIPE_BUF of at least 512. On Linux it is 4096.
 */
const MAX_PIPE_BYTES = 4_096;
/** Wait before writing again to a pipe whose reader is slow. */
const PIPE_RETRY_MS = 20;
const LF = 10;

const writeTo = promisify(write);
const statDescriptor = promisify(fstat);
const truncateDescriptor = promisify(ftruncate);

/** Callbacks for problems that operators must see. Each problem is reported once. */
export interface OutputEvents {
  onError(why: unknown): void;
  /** Called when writing works again. `lost` is the number of lines that were not written. */
  onRecovered(lost: number): void;
}

export interface OutputCounts {
  readonly written: number;
  readonly lost: number;
}

export class Output {
  /** Undefined for standard output. */
  readonly #path: string | undefined;
  readonly #events: OutputEvents;
  #file: FileHandle | undefined;
  #written = 0;
  #lost = 0;
  /** Lines lost since the last report. */
  #lostSinceReport = 0;
  /** Whether the file ends with an incomplete line. */
  #endsMidLine = false;
  #lastWrite: Promise<void> = Promise.resolve();
  /** Whether the output is closed. A file that is opened after that would never be closed. */
  #isClosed = false;

  constructor(path: string | undefined, news: OutputEvents) {
    this.#path = path;
    this.#events = news;
  }

  get counts(): OutputCounts {
    return { written: this.#written, lost: this.#lost };
  }

  /**
   * Rejects if the file cannot be written. It does not create the file before the first line is
   * written, because the check may run as another user.
   */
  async checkWritable(): Promise<void> {
    const path = this.#path;
    if (path === undefined || this.#file) return;
    try {
      await access(path, constants.W_OK);
    } catch (why) {
      if ((why as NodeJS.ErrnoException).code !== "ENOENT") throw why;
      await access(dirname(path), constants.W_OK);
    }
  }

  /**
   * Writes a number of complete lines. Writes run one after the other, and their promises never
   * reject.
   */
  write(text: string, lines: number): Promise<void> {
    return this.#enqueue(() => this.#writeBytes(Buffer.from(text), lines));
  }

  /** Switches to the file that is now at the path. A renamed file keeps the lines that it has. */
  reopen(): Promise<void> {
    return this.#enqueue(async () => {
      const path = this.#path;
      if (path === undefined || !this.#file) return;
      // If the path cannot be opened now, lines continue to go to the current file.
      const other = await openForAppend(path).catch(() => undefined);
      if (!other) return;
      await this.#file.close();
      this.#file = other;
      this.#endsMidLine = false;
    });
  }

  /** Reopens the path if it refers to another file or does not exist. */
  async reopenIfRotated(): Promise<void> {
    const [file, path] = [this.#file, this.#path];
    if (!file || path === undefined) return;
    const mine = await file.stat().catch(() => undefined);
    const there = await stat(path).catch(() => undefined);
    if (file === this.#file && !isSameFile(mine, there)) await this.reopen();
  }

  /** Closes the file after all pending writes. */
  close(): Promise<void> {
    return this.#enqueue(async () => {
      this.#isClosed = true;
      await this.#file?.close();
      this.#file = undefined;
    });
  }

  #enqueue(work: () => Promise<void>): Promise<void> {
    const done = this.#lastWrite.then(work);
    this.#lastWrite = done.catch(() => {});
    return done;
  }

  async #writeBytes(bytes: Buffer, lines: number): Promise<void> {
    if (this.#isClosed) return void (this.#lost += lines);
    let fd: number | undefined;
    let at = 0;
    try {
      fd = await this.#openDescriptor();
      if (this.#endsMidLine) await this.#endTornLine(fd);
      while (at < bytes.length) at += await this.#writeSome(fd, bytes, at);
    } catch (why) {
      // The search must not start at -1, because `lastIndexOf` counts negative numbers from the
      // end.
      const end = at === 0 ? 0 : bytes.lastIndexOf(LF, at - 1) + 1;
      if (at > end && fd !== undefined) this.#endsMidLine = !(await truncateLine(fd, at - end));
      return this.#recordLost(lines - countLines(bytes.subarray(0, end)), lines, why);
    }
    this.#written += lines;
    if (this.#lostSinceReport > 0) this.#events.onRecovered(this.#lostSinceReport);
    this.#lostSinceReport = 0;
  }

  async #openDescriptor(): Promise<number> {
    if (this.#path === undefined) return STDOUT;
    return (this.#file ??= await openForAppend(this.#path)).fd;
  }

  async #writeSome(fd: number, bytes: Buffer, at: number): Promise<number> {
    const most = fd === STDOUT ? pieceEnd(bytes, at) : bytes.length - at;
    for (;;)
      try {
        return (await writeTo(fd, bytes, at, most)).bytesWritten;
      } catch (why) {
        if ((why as NodeJS.ErrnoException).code !== "EAGAIN") throw why;
        await sleep(PIPE_RETRY_MS, undefined, { ref: false });
      }
  }

  /** Writes a line end, so that the next line starts on a new line. */
  async #endTornLine(fd: number): Promise<void> {
    await writeTo(fd, Buffer.of(LF));
    this.#endsMidLine = false;
  }

  #recordLost(lost: number, of: number, why: unknown): void {
    this.#written += of - lost;
    this.#lost += lost;
    if (this.#lostSinceReport === 0) this.#events.onError(why);
    this.#lostSinceReport += lost;
  }
}

/**
 * Opens the file for appending, so that existing lines are never overwritten. Mode 640: only the
 * owner and the group can read a new file.
 */
const openForAppend = (path: string): Promise<FileHandle> => open(path, "a", 0o640);

const isSameFile = (mine: Stats | undefined, there: Stats | undefined): boolean =>
  mine !== undefined && there !== undefined && mine.ino === there.ino && mine.dev === there.dev;

/**
 * Returns the length of the complete lines that fit into one atomic pipe write. A longer line is
 * written alone.
 */
function pieceEnd(bytes: Buffer, at: number): number {
  if (bytes.length - at <= MAX_PIPE_BYTES) return bytes.length - at;
  const end = bytes.lastIndexOf(LF, at + MAX_PIPE_BYTES - 1);
  return (end < at ? bytes.indexOf(LF, at) : end) + 1 - at;
}

/** Removes the beginning of an incomplete line. Returns false if that is impossible. */
async function truncateLine(fd: number, begun: number): Promise<boolean> {
  try {
    const { size } = await statDescriptor(fd);
    await truncateDescriptor(fd, size - begun);
    return true;
  } catch {
    return false;
  }
}

function countLines(bytes: Buffer): number {
  let lines = 0;
  for (const byte of bytes) if (byte === LF) lines++;
  return lines;
}

// Support for the systemd journal as standard output. The journal reads a line's level from a
// prefix and limits the rate of lines.

/**
 * The journal's default rate limit: 10,000 lines in 30 s per service. The journal drops further
 * lines.
 */
export const JOURNAL_LINES_PER_SECOND = 10_000 / 30;

const LEVEL_PREFIXES = {
  ok: "<6>",
  client_error: "<4>",
  refused: "<4>",
  canceled: "<4>",
  upstream_error: "<3>",
  error: "<3>",
} as const satisfies Record<RequestOutcome, string>;

export const levelPrefix = (outcome: RequestOutcome): string => LEVEL_PREFIXES[outcome];

/** Reports once if more lines are written than the journal accepts. */
export class JournalRateMonitor {
  readonly #onExceeded: (rate: number) => void;
  #since = 0;
  #lines = 0;
  #hasWarned = false;

  constructor(tell: (rate: number) => void) {
    this.#onExceeded = tell;
  }

  /** Counts a number of lines. `now` is in milliseconds. */
  add(lines: number, now: number): void {
    if (this.#hasWarned) return;
    if (now - this.#since >= 1_000) [this.#since, this.#lines] = [now, 0];
    this.#lines += lines;
    if (this.#lines <= JOURNAL_LINES_PER_SECOND) return;
    this.#hasWarned = true;
    this.#onExceeded(this.#lines);
  }
}
