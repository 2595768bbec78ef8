// The events of a background response, or the results of lines, on disk. They are in encrypted frames. A
// frame contains complete events, so that a reader can follow a log that is still written, in any
// process that has the file.
import { createCipheriv, createDecipheriv } from "node:crypto";
import { mkdir, open, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";

const HEADER_BYTES = 4;
const TAG_BYTES = 16;
/** Size of the events that are written together, in bytes. */
const FRAME_BYTES = 32 * 1024;
/** Longest time in milliseconds until an event is written. */
const FLUSH_MS = 100;

/** Begin of a frame. */
export interface LogPosition {
  readonly offset: number;
  /** Number of the frame, from 0. */
  readonly frame: number;
}

const START: LogPosition = { offset: 0, frame: 0 };

/** A frame is sealed with its number, so frames cannot be moved or repeated. */
const nonceOf = (frame: number): Buffer => {
  const nonce = Buffer.alloc(12);
  nonce.writeUIntBE(frame, 0, 6);
  return nonce;
};

/** Encrypts one frame. The key encrypts one log only. */
function sealFrame(key: Uint8Array, frame: number, text: string): Buffer {
  const cipher = createCipheriv("aes-256-gcm", key, nonceOf(frame));
  const sealed = [cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()];
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt32BE(sealed.reduce((sum, part) => sum + part.length, 0));
  return Buffer.concat([header, ...sealed]);
}

/** Decrypts the content of a frame. Throws if it was changed, or is another frame. */
function openFrame(key: Uint8Array, frame: number, sealed: Buffer): string {
  const options = { authTagLength: TAG_BYTES };
  const end = Math.max(0, sealed.length - TAG_BYTES);
  const decipher = createDecipheriv("aes-256-gcm", key, nonceOf(frame), options);
  decipher.setAuthTag(sealed.subarray(end));
  const text = Buffer.concat([decipher.update(sealed.subarray(0, end)), decipher.final()]);
  return text.toString();
}

/** Writes a log. The events of a frame are separated by line breaks, which JSON text has none of. */
export class EventLogWriter {
  readonly #file: FileHandle;
  readonly #key: Uint8Array;
  readonly #onWritten: () => void;
  #end: LogPosition = START;
  #pending: string[] = [];
  #pendingBytes = 0;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  #problem: unknown;

  private constructor(file: FileHandle, key: Uint8Array, onWritten: () => void) {
    this.#file = file;
    this.#key = key;
    this.#onWritten = onWritten;
  }

  /** Creates the file, and its folder if that is missing. */
  static async create(
    path: string,
    key: Uint8Array,
    onWritten: () => void = () => {},
  ): Promise<EventLogWriter> {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    return new EventLogWriter(await open(path, "wx", 0o600), key, onWritten);
  }

  /** Size of all complete frames. */
  get bytes(): number {
    return this.#end.offset;
  }

  /**
   * Adds an event. It is written soon, together with others. Returns a promise if the disk has to
   * catch up. Throws if an earlier event could not be written.
   */
  append(line: string): Promise<void> | undefined {
    if (this.#problem !== undefined) throw this.#problem as Error;
    this.#pending.push(line);
    this.#pendingBytes += line.length;
    if (this.#pendingBytes >= FRAME_BYTES) return this.flush();
    this.#timer ??= setTimeout(() => void this.flush().catch(() => undefined), FLUSH_MS);
    return undefined;
  }

  /** Writes an event in a separate frame, and returns the begin of that frame. */
  async appendAlone(line: string): Promise<LogPosition> {
    await this.flush();
    const at = this.#end;
    this.#pending.push(line);
    await this.flush();
    return at;
  }

  /** Writes all events. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#pending.length > 0) {
      const text = this.#pending.join("\n");
      this.#pending = [];
      this.#pendingBytes = 0;
      this.#writing = this.#writing.then(() => this.#write(text));
    }
    await this.#writing;
    if (this.#problem !== undefined) throw this.#problem as Error;
  }

  async #write(text: string): Promise<void> {
    if (this.#problem !== undefined) return;
    const { offset, frame } = this.#end;
    try {
      const sealed = sealFrame(this.#key, frame, text);
      for (let written = 0; written < sealed.length;) {
        const { bytesWritten } = await this.#file.write(
          sealed,
          written,
          undefined,
          offset + written,
        );
        written += bytesWritten;
      }
      this.#end = { offset: offset + sealed.length, frame: frame + 1 };
      this.#onWritten();
    } catch (error) {
      this.#problem = error ?? new Error("The log could not be written.");
    }
  }

  /** Closes the file, when its content is on disk. */
  async close(): Promise<void> {
    try {
      await this.flush();
      await this.#file.sync();
    } finally {
      await this.#file.close();
    }
  }
}

/** Reads a log frame by frame. */
export class EventLogReader {
  readonly #file: FileHandle;
  readonly #key: Uint8Array;
  #at: LogPosition;

  private constructor(file: FileHandle, key: Uint8Array, at: LogPosition) {
    this.#file = file;
    this.#key = key;
    this.#at = at;
  }

  static async open(
    path: string,
    key: Uint8Array,
    at: LogPosition = START,
  ): Promise<EventLogReader> {
    return new EventLogReader(await open(path, "r"), key, at);
  }

  /**
   * Returns the events of the next frame. Undefined if it is not complete yet.
   * @param end Where the log ends, if that is known.
   */
  async next(end = Infinity): Promise<string[] | undefined> {
    const { offset, frame } = this.#at;
    const size = Math.min(end, (await this.#file.stat()).size);
    if (size < offset + HEADER_BYTES) return undefined;
    const header = await this.#read(offset, HEADER_BYTES);
    const length = header.readUInt32BE();
    const next = offset + HEADER_BYTES + length;
    if (size < next) return undefined;
    const text = openFrame(this.#key, frame, await this.#read(offset + HEADER_BYTES, length));
    this.#at = { offset: next, frame: frame + 1 };
    return text.split("\n");
  }

  async #read(from: number, length: number): Promise<Buffer> {
    const bytes = Buffer.alloc(length);
    for (let read = 0; read < length;) {
      const { bytesRead } = await this.#file.read(bytes, read, length - read, from + read);
      if (bytesRead === 0) throw new Error("The log is truncated.");
      read += bytesRead;
    }
    return bytes;
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}
