// Where lines go: a file that may be renamed under it, or the gateway's standard output. A disk that is full loses lines and no
// request; how many is known.
import { constants, fstat, ftruncate, type Stats, write } from "node:fs";
import { access, type FileHandle, open, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

const STDOUT = 1;
/** A pipe takes so much in one piece, so that no other writer's line stands within it (POSIX: PIPE_BUF is 512 or more, 4096 here). */
const MAX_PIPE_BYTES = 4_096;
/** A pipe whose reader is slow is asked again. */
const PIPE_RETRY_MS = 20;
const LF = 10;

const writeTo = promisify(write);
const statDescriptor = promisify(fstat);
const truncateDescriptor = promisify(ftruncate);

/** What the operator has to know of it, once each. */
export interface OutputEvents {
  onError(why: unknown): void;
  /** Lines are written again; so many were not. */
  onRecovered(lost: number): void;
}

export interface OutputCounts {
  readonly written: number;
  readonly lost: number;
}

export class Output {
  /** Undefined: standard output. */
  readonly #path: string | undefined;
  readonly #events: OutputEvents;
  #file: FileHandle | undefined;
  #written = 0;
  #lost = 0;
  /** Lines that were not written since the operator was told. */
  #lostSinceReport = 0;
  /** The end of a line is missing there. */
  #endsMidLine = false;
  #lastWrite: Promise<void> = Promise.resolve();
  /** What is opened after its end stays open. */
  #isClosed = false;

  constructor(path: string | undefined, news: OutputEvents) {
    this.#path = path;
    this.#events = news;
  }

  get counts(): OutputCounts {
    return { written: this.#written, lost: this.#lost };
  }

  /** Rejects where the file could not be written. It is not made before it has a line: another user may have come to look. */
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

  /** Whole lines, so many. One after the other; never rejects. */
  write(text: string, lines: number): Promise<void> {
    return this.#enqueue(() => this.#writeBytes(Buffer.from(text), lines));
  }

  /** What was renamed keeps what it has; what stands under the name from now on gets the rest. */
  reopen(): Promise<void> {
    return this.#enqueue(async () => {
      const path = this.#path;
      if (path === undefined || !this.#file) return;
      // What cannot be opened now goes on where it was.
      const other = await openForAppend(path).catch(() => undefined);
      if (!other) return;
      await this.#file.close();
      this.#file = other;
      this.#endsMidLine = false;
    });
  }

  /** Reopens it where something else, or nothing, stands under its name. */
  async reopenIfRotated(): Promise<void> {
    const [file, path] = [this.#file, this.#path];
    if (!file || path === undefined) return;
    const mine = await file.stat().catch(() => undefined);
    const there = await stat(path).catch(() => undefined);
    if (file === this.#file && !isSameFile(mine, there)) await this.reopen();
  }

  /** When all is written. */
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
      // A place before the first byte would be counted from the end.
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

  /** What comes next begins on a line of its own. */
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

/** What is appended to is never written over, and others than its group do not read it. */
const openForAppend = (path: string): Promise<FileHandle> => open(path, "a", 0o640);

const isSameFile = (mine: Stats | undefined, there: Stats | undefined): boolean =>
  mine !== undefined && there !== undefined && mine.ino === there.ino && mine.dev === there.dev;

/** As many whole lines as a pipe takes at once; a line that is longer goes alone. */
function pieceEnd(bytes: Buffer, at: number): number {
  if (bytes.length - at <= MAX_PIPE_BYTES) return bytes.length - at;
  const end = bytes.lastIndexOf(LF, at + MAX_PIPE_BYTES - 1);
  return (end < at ? bytes.indexOf(LF, at) : end) + 1 - at;
}

/** Takes the beginning of a line away again; false where that cannot be done. */
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
