// Splits a JSON body with a list of requests while it arrives, so that the body may be larger than
// memory.
import { fail } from "tollgate/plugin";

/** Maximum size of one request in bytes. */
const MAX_REQUEST_BYTES = 32 * 1024 * 1024;
/** Maximum size of everything else in bytes. */
const MAX_OTHER_BYTES = 64 * 1024;
/** Bytes before a list in which its name is looked for. */
const TAIL_BYTES = 64;

const [QUOTE, BACKSLASH, OPEN_OBJECT, CLOSE_OBJECT, OPEN_LIST, CLOSE_LIST, COMMA] = [
  34, 92, 123, 125, 91, 93, 44,
];
/** Bytes that do not begin an element: spaces, and the ends of elements and of the list. */
const SEPARATORS: ReadonlySet<number> = new Set([9, 10, 13, 32, COMMA, CLOSE_LIST, CLOSE_OBJECT]);

/** Position of a byte in the body. */
interface Position {
  readonly line: number;
  readonly column: number;
}

/** A request of a list. */
export interface ListedRequest extends Position {
  /** Text of the request. */
  readonly bytes: Buffer;
}

/**
 * Yields the elements of the list `name` of a JSON object. Everything else of the object is checked
 * when the body has ended.
 */
export async function* splitRequestList(
  content: AsyncIterable<Uint8Array>,
  name: string,
): AsyncGenerator<ListedRequest, void> {
  const splitter = new RequestSplitter(name);
  for await (const some of content)
    yield* splitter.push(Buffer.from(some.buffer, some.byteOffset, some.byteLength));
  splitter.end();
}

class RequestSplitter {
  readonly #name: string;
  /** Everything outside of the list. */
  readonly #other: Buffer[] = [];
  #otherBytes = 0;
  readonly #element: Buffer[] = [];
  #elementBytes = 0;
  #start: Position = { line: 1, column: 1 };
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  /** Whether the list has begun, and whether it has ended. */
  #list: "before" | "inside" | "after" = "before";
  /** Whether the element has text, and the number of elements before it. */
  #hasStarted = false;
  #count = 0;
  #line = 1;
  #lineStart = 0;
  #offset = 0;

  constructor(name: string) {
    this.#name = name;
  }

  *push(chunk: Buffer): Generator<ListedRequest, void> {
    let from = 0;
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at]!;
      if (byte === 10) [this.#line, this.#lineStart] = [this.#line + 1, this.#offset + at + 1];
      if (this.#isInString) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (byte === BACKSLASH) this.#isEscaped = true;
        else if (byte === QUOTE) this.#isInString = false;
        continue;
      }
      if (this.#list === "inside" && !this.#hasStarted && !SEPARATORS.has(byte)) {
        this.#hasStarted = true;
        this.#start = this.#positionOf(at);
      }
      if (byte === QUOTE) this.#isInString = true;
      else if (byte === OPEN_OBJECT || byte === OPEN_LIST) {
        this.#depth++;
        if (byte === OPEN_LIST && this.#depth === 2 && this.#list === "before") {
          this.#addOther(chunk.subarray(from, at + 1));
          from = at + 1;
          if (this.#endsWithName()) this.#list = "inside";
        }
      } else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) {
        this.#depth--;
        if (this.#depth === 1 && this.#list === "inside") {
          this.#addElement(chunk.subarray(from, at));
          from = at;
          // Only an empty list has an empty last element.
          if (this.#hasStarted || this.#count > 0) yield this.#takeElement();
          this.#list = "after";
        }
      } else if (byte === COMMA && this.#depth === 2 && this.#list === "inside") {
        this.#addElement(chunk.subarray(from, at));
        from = at + 1;
        yield this.#takeElement();
      }
    }
    const rest = chunk.subarray(from);
    if (this.#list === "inside") this.#addElement(rest);
    else this.#addOther(rest);
    this.#offset += chunk.length;
  }

  /** Checks everything outside of the list. */
  end(): void {
    let value: unknown;
    try {
      value = JSON.parse(Buffer.concat(this.#other).toString());
    } catch {
      const { line, column } = this.#positionOf(0);
      fail("invalid", `The body is not JSON: see line ${line}, column ${column}.`, {
        code: "invalid_json",
      });
    }
    if (this.#list === "before" || typeof value !== "object")
      fail("invalid", `Missing ${this.#name}: it must be a list.`, { param: this.#name });
  }

  #positionOf = (at: number): Position => ({
    line: this.#line,
    column: this.#offset + at - this.#lineStart + 1,
  });

  /** Whether the text outside of the list ends with the name of the list. */
  #endsWithName(): boolean {
    let from = this.#other.length;
    for (let bytes = 0; from > 0 && bytes < TAIL_BYTES;) bytes += this.#other[--from]!.length;
    const tail = Buffer.concat(this.#other.slice(from)).subarray(-TAIL_BYTES).toString();
    return /"(\w+)"\s*:\s*\[$/.exec(tail)?.[1] === this.#name;
  }

  #addOther(bytes: Buffer): void {
    this.#otherBytes += bytes.length;
    if (this.#otherBytes > MAX_OTHER_BYTES)
      fail("too_large", `The body has more than ${MAX_OTHER_BYTES} bytes besides its requests.`);
    if (bytes.length > 0) this.#other.push(Buffer.from(bytes));
  }

  #addElement(bytes: Buffer): void {
    this.#elementBytes += bytes.length;
    if (this.#elementBytes > MAX_REQUEST_BYTES)
      fail(
        "too_large",
        `The request in line ${this.#start.line} is larger than ${MAX_REQUEST_BYTES} bytes.`,
      );
    if (bytes.length > 0) this.#element.push(bytes);
  }

  #takeElement(): ListedRequest {
    const bytes = Buffer.concat(this.#element.splice(0));
    [this.#elementBytes, this.#hasStarted] = [0, false];
    this.#count++;
    return { ...this.#start, bytes };
  }
}
