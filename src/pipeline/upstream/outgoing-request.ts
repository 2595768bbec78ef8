// The request about to be sent. Edits are kept per top-level field and spliced into the client's
// own bytes. All unedited content is preserved byte for byte, including numbers beyond 2^53 and the
// order of keys.
import type { Span } from "../../lib/json/json-scanner.ts";
import { unpooledFromText, unpooledConcat } from "../../lib/unpooled-buffer.ts";
import {
  isFilePart,
  type Body,
  type Field,
  type HeadersOut,
  type Json,
  type Opt,
} from "../../model/values.ts";
import type { Outgoing } from "../../plugin/outgoing.ts";
import type { References } from "../../plugin/references.ts";
import { findReferences, updateReferences } from "../../protocols/references/index.ts";
import {
  type MultipartLayout,
  applyMultipartEdits,
  createBoundary,
  encodeMultipart,
} from "../body/multipart-body.ts";
import { multipartContentType } from "../body/multipart-parser.ts";

const COMMA = Buffer.from(",");
const OPEN = Buffer.from("{");
const CLOSE = Buffer.from("}");
const NONE: readonly string[] = [];

export class OutgoingRequest implements Outgoing {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, Opt<string>> = {};
  readonly #body: Body | null;
  readonly #raw: Buffer | null;
  readonly #spans: ReadonlyMap<string, Span> | null;
  readonly #multipart: MultipartLayout | undefined;
  readonly #edits = new Map<string, Opt<Field>>();
  /** The serialized body. It is discarded when the body is edited. */
  #chunks: BodyChunks | undefined;
  /** References in the body without edits. */
  #originalReferences: References | undefined;
  #references: References | undefined;

  /**
   * Creates a request. Passthrough mode passes `raw` with `spans` or a `form`. Without them, the
   * body is serialized. `named`: references that were found in the body before any field was set.
   */
  constructor(of: {
    method: string;
    path: string;
    body: Body | null;
    raw?: Buffer | undefined;
    spans?: ReadonlyMap<string, Span> | null | undefined;
    form?: MultipartLayout | undefined;
    named?: References | undefined;
  }) {
    this.method = of.method;
    this.path = of.path;
    this.#body = of.body;
    this.#raw = of.raw ?? null;
    this.#spans = of.spans ?? null;
    this.#multipart = of.form;
    this.#originalReferences = of.named;
  }

  get(field: string): Opt<Field> {
    if (this.#edits.has(field)) return this.#edits.get(field);
    return this.#body !== null && Object.hasOwn(this.#body, field) ? this.#body[field] : undefined;
  }

  /**
   * Returns which of the names occur in the body. It iterates over the body, which has few fields,
   * because the lists of names are long.
   */
  presentFields(names: ReadonlySet<string>): readonly string[] {
    let found: string[] | undefined;
    for (const field in this.#body)
      if (names.has(field) && this.get(field) !== undefined) (found ??= []).push(field);
    for (const [field, value] of this.#edits)
      if (names.has(field) && value !== undefined && !found?.includes(field))
        (found ??= []).push(field);
    return found ?? NONE;
  }

  set(field: string, value: Opt<Field>): void {
    if (!this.#body) return;
    this.#chunks = undefined;
    this.#references = undefined;
    if (isSameValue(value, Object.hasOwn(this.#body, field) ? this.#body[field] : undefined))
      this.#edits.delete(field);
    else this.#edits.set(field, value);
  }

  remove(field: string): void {
    this.set(field, undefined);
  }

  setHeader(name: string, value?: string): void {
    if (value === undefined) delete this.headers[name.toLowerCase()];
    else this.headers[name.toLowerCase()] = value;
  }

  /**
   * Returns the serialized body. A body with a file becomes a form, and its content type is set
   * accordingly.
   */
  toChunks(): BodyChunks | null {
    if (!this.#body) return null;
    return (this.#chunks ??= new BodyChunks(this.#serialize()));
  }

  /** Returns a copy whose edits do not change this request. */
  copy(): OutgoingRequest {
    const copy = new OutgoingRequest({
      method: this.method,
      path: this.path,
      body: this.#body,
      raw: this.#raw ?? undefined,
      spans: this.#spans,
      form: this.#multipart,
      named: this.#originalReferences,
    });
    Object.assign(copy.headers, this.headers);
    for (const [field, value] of this.#edits) copy.#edits.set(field, value);
    return copy;
  }

  /** Whether the body is the client's, except for the model's name. */
  get isUnchanged(): boolean {
    if (!this.#raw) return false;
    for (const field of this.#edits.keys()) if (field !== "model") return false;
    return true;
  }

  #serialize(): Buffer[] {
    if (this.#raw && this.#multipart)
      return [applyMultipartEdits(this.#raw, this.#multipart, this.#edits)];
    if (!this.#raw || !this.#spans) return [this.#encode()];
    if (this.#edits.size === 0) return [this.#raw];
    for (const value of this.#edits.values()) if (hasFile(value)) return [this.#encode()];
    for (const [field, value] of this.#edits)
      if (value === undefined || !this.#spans.has(field))
        return this.#rejoinMembers(this.#raw, this.#spans);
    return this.#spliceValues(this.#raw, this.#spans);
  }

  /** Returns all references. Fields that were not edited are not analyzed again. */
  references(): References {
    if (!this.#body) return [];
    this.#originalReferences ??= findReferences(this.#body);
    return (this.#references ??=
      this.#edits.size === 0
        ? this.#originalReferences
        : updateReferences(this.#originalReferences, this.#edits));
  }

  /** Returns the body as the provider will read it. */
  toBody(): Body | null {
    if (!this.#body) return null;
    if (this.#edits.size === 0) return this.#body;
    // Built from entries, because an assignment to "__proto__" would set a prototype.
    const fields = new Map(Object.entries(this.#body));
    for (const [field, value] of this.#edits)
      if (value === undefined) fields.delete(field);
      else fields.set(field, value);
    return Object.fromEntries(fields);
  }

  #encode(): Buffer {
    const body = this.toBody()!;
    for (const field in body)
      if (hasFile(body[field])) {
        const boundary = createBoundary();
        this.setHeader("content-type", multipartContentType(boundary));
        return encodeMultipart(body, boundary);
      }
    return unpooledFromText(JSON.stringify(body));
  }

  /**
   * Splices changed values into the text. All other content, including whitespace, is preserved.
   */
  #spliceValues(raw: Buffer, spans: ReadonlyMap<string, Span>): Buffer[] {
    const parts: Buffer[] = [];
    let at = 0;
    const edits =
      this.#edits.size === 1
        ? this.#edits
        : [...this.#edits].toSorted((a, b) => spans.get(a[0])!.from - spans.get(b[0])!.from);
    for (const [field, value] of edits) {
      const span = spans.get(field)!;
      parts.push(raw.subarray(at, span.from), toJsonBytes(value as Json));
      at = span.to;
    }
    parts.push(raw.subarray(at));
    return parts;
  }

  /**
   * Adds or removes members. The remaining members keep their bytes, but the whitespace between
   * them is lost.
   */
  #rejoinMembers(raw: Buffer, spans: ReadonlyMap<string, Span>): Buffer[] {
    const parts: Buffer[] = [];
    let before = OPEN;
    for (const [field, span] of spans) {
      const edited = this.#edits.has(field);
      const value = this.#edits.get(field);
      if (edited && value === undefined) continue;
      parts.push(before, raw.subarray(span.key, edited ? span.from : span.to));
      if (edited) parts.push(toJsonBytes(value as Json));
      before = COMMA;
    }
    for (const [field, value] of this.#edits)
      if (value !== undefined && !spans.has(field)) {
        parts.push(before, toJsonBytes(field), Buffer.from(":"), toJsonBytes(value as Json));
        before = COMMA;
      }
    if (parts.length === 0) parts.push(OPEN);
    parts.push(CLOSE);
    return parts;
  }
}

const toJsonBytes = (value: Json): Buffer => Buffer.from(JSON.stringify(value));

/** Whether a value is a file or a list that contains one. */
const hasFile = (value: Opt<Field>): boolean =>
  Array.isArray(value) ? value.some(isFilePart) : isFilePart(value);

function isSameValue(a: Opt<Field>, b: Opt<Field>): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (hasFile(a) || hasFile(b)) return false;
  return JSON.stringify(a) === JSON.stringify(b);
}

/**
 * Flattens headers to the form that undici handles fastest: name, value, name, value. Headers in
 * `over` replace others.
 */
export function flattenHeaders(headers: HeadersOut, over: HeadersOut): string[] {
  const list: string[] = [];
  for (const name in headers) {
    const value = headers[name];
    if (value !== undefined && !Object.hasOwn(over, name)) list.push(name, value);
  }
  for (const name in over) {
    const value = over[name];
    if (value !== undefined) list.push(name, value);
  }
  return list;
}

// The body of an outgoing request. A small body is one buffer. A large body that was edited
// consists of views into the client's bytes with the edits between them, because copying each large
// body would cause full garbage collections.
/** Size in bytes from which a body is not copied into one buffer. */
const SINGLE_BUFFER_BYTES = 256 * 1024;
/**
 * Chunks smaller than this many bytes are copied together, because a separate write for each of
 * them costs more.
 */
const SMALL_CHUNK_BYTES = 16 * 1024;

export class BodyChunks {
  readonly length: number;
  #chunks: readonly Buffer[];

  constructor(parts: readonly Buffer[]) {
    let length = 0;
    for (const part of parts) length += part.length;
    this.length = length;
    if (parts.length === 1) this.#chunks = parts;
    else
      this.#chunks =
        length < SINGLE_BUFFER_BYTES ? [unpooledConcat(parts)] : mergeSmallChunks(parts);
  }

  get chunks(): readonly Buffer[] {
    return this.#chunks;
  }

  /**
   * Returns the body in one buffer, for a scheme that signs it. The returned buffer is also the
   * buffer that is sent.
   */
  toBuffer(): Buffer {
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)];
    return this.#chunks[0]!;
  }
}

/** Merges small adjacent chunks. */
function mergeSmallChunks(parts: readonly Buffer[]): Buffer[] {
  const list: Buffer[] = [];
  let small: Buffer[] = [];
  const join = () => {
    if (small.length > 0) list.push(unpooledConcat(small));
    small = [];
  };
  for (const part of parts) {
    if (part.length < SMALL_CHUNK_BYTES) {
      small.push(part);
      continue;
    }
    join();
    list.push(part);
  }
  join();
  return list;
}
