// Reads the parts of a form as they arrive, so that a form may be larger than memory. It accepts
// exactly the forms that `parseMultipart` accepts.
import { isUtf8 } from "node:buffer";
import { fail } from "../../model/error.ts";
import { failBoundExceeded } from "../../model/bound-exceeded.ts";
import type { FormPart } from "../../plugin/frontend.ts";
import {
  BOUNDARY_IN_PART,
  MAX_HEADER_BYTES,
  MAX_PARTS,
  parsePartHeaders,
  TRUNCATED,
} from "./multipart-parser.ts";

const rejectForm = (message: string): never => fail("invalid", message, { code: "invalid_form" });

const NOTHING = Buffer.alloc(0);
const CRLF = Buffer.from("\r\n");
const HEADERS_END = Buffer.from("\r\n\r\n");

/**
 * Yields the parts of a form. The content of a part ends when the next part is requested. The rest
 * of the content is then skipped.
 * @param chunks The form as it arrives.
 */
export async function* readFormParts(
  chunks: AsyncIterable<Buffer>,
  boundary: string,
): AsyncGenerator<FormPart, void> {
  const form = new FormReader(chunks[Symbol.asyncIterator](), boundary);
  await form.readStart();
  for (let count = 0; !(await form.readBoundary()); count++) {
    if (count === MAX_PARTS) failBoundExceeded("formParts");
    const { name, filename, mime } = await form.readHeaders();
    const content = form.readContent();
    yield { name, filename, mime, content };
    while (!(await content.next()).done);
  }
}

class FormReader {
  readonly #chunks: AsyncIterator<Buffer>;
  readonly #mark: Buffer;
  /** Bytes that have arrived and are not read yet. */
  #rest: Buffer = NOTHING;
  /** Free space after these bytes, so that many small chunks are not copied again and again. */
  #space: Buffer = NOTHING;

  constructor(chunks: AsyncIterator<Buffer>, boundary: string) {
    this.#chunks = chunks;
    this.#mark = Buffer.from(`--${boundary}`, "latin1");
  }

  /** Reads the optional line break before the first boundary. */
  async readStart(): Promise<void> {
    await this.#waitFor(CRLF.length);
    if (this.#startsWith(CRLF)) this.#take(CRLF.length);
    await this.#waitFor(this.#mark.length);
    if (!this.#startsWith(this.#mark)) rejectForm("The form does not start with its boundary.");
  }

  /** Reads a boundary and what follows on its line. Returns whether it is the final boundary. */
  async readBoundary(): Promise<boolean> {
    this.#take(this.#mark.length);
    await this.#waitFor(2);
    if (this.#rest.length < 2) rejectForm(TRUNCATED);
    const end = this.#take(2).toString("latin1");
    if (end === "\r\n") return false;
    if (end !== "--") rejectForm(BOUNDARY_IN_PART);
    await this.#waitFor(CRLF.length + 1);
    if (this.#rest.length > 0 && !this.#rest.equals(CRLF))
      rejectForm("The form has data after its final boundary.");
    return true;
  }

  async readHeaders(): Promise<Pick<FormPart, "name" | "filename" | "mime">> {
    for (let searched = 0; ;) {
      // An empty header block ends where it begins.
      const isEmpty = this.#startsWith(CRLF);
      const end = isEmpty ? 0 : this.#rest.indexOf(HEADERS_END, Math.max(0, searched - 3));
      const length = end < 0 ? this.#rest.length - CRLF.length : end + CRLF.length;
      if (length > MAX_HEADER_BYTES - CRLF.length) failBoundExceeded("formHead");
      if (end >= 0) {
        const lines = this.#take(end);
        if (lines.includes(this.#mark)) rejectForm("A part of the form has no content.");
        this.#take(isEmpty ? CRLF.length : HEADERS_END.length);
        const headers = isUtf8(lines) ? parsePartHeaders(lines.toString()) : undefined;
        return headers ?? rejectForm("A part of the form has ambiguous headers.");
      }
      searched = this.#rest.length;
      if (!(await this.#readMore()))
        rejectForm(
          this.#rest.includes(this.#mark) ? "A part of the form has no content." : TRUNCATED,
        );
    }
  }

  /**
   * Yields the content of a part up to the line break before the next boundary. A chunk in which no
   * boundary can begin is yielded without a copy.
   */
  async *readContent(): AsyncGenerator<Buffer, void> {
    for (;;) {
      const at = this.#rest.indexOf(this.#mark);
      if (at >= 0) {
        const end = at - CRLF.length;
        if (end < 0 || !this.#rest.subarray(end, at).equals(CRLF)) rejectForm(BOUNDARY_IN_PART);
        const last = this.#take(end);
        this.#take(CRLF.length);
        if (last.length > 0) yield last;
        return;
      }
      const end = this.#boundaryStart();
      if (end > 0) yield this.#take(end);
      else if (!(await this.#readMore())) rejectForm(TRUNCATED);
    }
  }

  /** Returns the first position at which a boundary may begin that ends in a later chunk. */
  #boundaryStart(): number {
    const from = Math.max(0, this.#rest.length - CRLF.length - this.#mark.length + 1);
    const offset = this.#rest
      .subarray(from)
      .findIndex((byte) => byte === CRLF[0] || byte === this.#mark[0]);
    return offset < 0 ? this.#rest.length : from + offset;
  }

  #startsWith(bytes: Buffer): boolean {
    return this.#rest.subarray(0, bytes.length).equals(bytes);
  }

  /** Waits for this many bytes, or for the end of the form. */
  async #waitFor(length: number): Promise<void> {
    while (this.#rest.length < length && (await this.#readMore()));
  }

  #take(length: number): Buffer {
    const taken = this.#rest.subarray(0, length);
    // The receiver of a complete chunk may free its memory.
    this.#rest = length === this.#rest.length ? NOTHING : this.#rest.subarray(length);
    return taken;
  }

  async #readMore(): Promise<boolean> {
    const next = await this.#chunks.next();
    if (next.done) return false;
    const chunk = next.value;
    if (this.#rest.length === 0) [this.#rest, this.#space] = [chunk, NOTHING];
    else {
      const length = this.#rest.length + chunk.length;
      if (chunk.length > this.#space.length) {
        const grown = Buffer.allocUnsafeSlow(length + this.#rest.length);
        this.#rest.copy(grown);
        this.#space = grown.subarray(this.#rest.length);
        this.#rest = grown.subarray(0, this.#rest.length);
      }
      chunk.copy(this.#space);
      this.#space = this.#space.subarray(chunk.length);
      this.#rest = Buffer.from(this.#rest.buffer, this.#rest.byteOffset, length);
    }
    return true;
  }
}
