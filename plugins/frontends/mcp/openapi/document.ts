// An OpenAPI document: its values, its references, and the line and column of each value.
import { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument, type Document } from "yaml";
import type { Json, JsonObject } from "tollgate/plugin";

/** Maximum size of a document in characters. */
export const MAX_DOCUMENT_LENGTH = 16 * 1024 * 1024;
/** Maximum number of YAML aliases that a document may expand, so that it stays near its own size. */
const MAX_ALIASES = 100;
/** Maximum length of a chain of references. */
const MAX_REFERENCES = 32;

/** Position of a value: the names and indexes that lead to it. */
export type DocumentPath = readonly (string | number)[];

/** A value together with its position. */
export interface Located<T = Json> {
  readonly value: T;
  readonly path: DocumentPath;
}

/** A problem of a document, with its file, line, and column. */
export class DocumentError extends Error {}

/** A parsed OpenAPI document of version 3.0 or 3.1. */
export class OpenApiDocument {
  readonly root: JsonObject;
  readonly version: "3.0" | "3.1";
  readonly #name: string;
  readonly #text: string;
  #positions: { readonly document: Document; readonly lines: LineCounter } | undefined;

  /**
   * Throws a `DocumentError` if the text is not an OpenAPI document.
   * @param name File or URL, for error messages.
   */
  constructor(name: string, text: string) {
    this.#name = name;
    this.#text = text;
    if (text.length > MAX_DOCUMENT_LENGTH)
      throw new DocumentError(`${name}: larger than ${MAX_DOCUMENT_LENGTH} characters`);
    const root = this.#parse();
    if (!isObject(root)) throw new DocumentError(`${name}:1:1: not an object`);
    this.root = root;
    const { openapi } = root;
    const version = typeof openapi === "string" ? /^3\.[01](?=\.)/.exec(openapi)?.[0] : undefined;
    if (version === undefined)
      throw this.error(
        openapi === undefined ? [] : ["openapi"],
        "swagger" in root
          ? "Swagger 2.0 is not supported; convert the document to OpenAPI 3.0 or 3.1"
          : 'must be an OpenAPI document with `openapi: "3.0.x"` or `"3.1.x"`',
      );
    this.version = version as "3.0" | "3.1";
  }

  /** Returns an error at this position. */
  error(path: DocumentPath, message: string): DocumentError {
    return new DocumentError(`${this.locate(path)}: ${message}`);
  }

  /** Returns the file, line, and column of a value, or of the nearest value that contains it. */
  locate(path: DocumentPath): string {
    const { document, lines } = this.#readPositions();
    let node: unknown = document.contents;
    let offset = rangeStart(node) ?? 0;
    for (const segment of path) {
      if (isAlias(node)) node = node.resolve(document);
      const pair = isMap(node)
        ? node.items.find(({ key }) => String(isScalar(key) ? key.value : key) === String(segment))
        : undefined;
      node = pair ? pair.value : isSeq(node) ? node.items[Number(segment)] : undefined;
      const start = rangeStart(pair?.key) ?? rangeStart(node);
      if (start === undefined) break;
      offset = start;
    }
    const { line, col } = lines.linePos(offset);
    return `${this.#name}:${line}:${col}`;
  }

  /** Follows references until a value that is none. Throws for references to other files. */
  resolve(at: Located): Located {
    let current = at;
    for (let n = 0; n < MAX_REFERENCES; n++) {
      const target = isObject(current.value) ? current.value["$ref"] : undefined;
      if (typeof target !== "string") return current;
      current = this.#follow(target, current.path);
    }
    throw this.error(at.path, "the references lead in a circle");
  }

  /** Returns the value of a member. Undefined if the object does not have it. */
  member(of: Located, name: string | number): Located | undefined {
    const value = isObject(of.value) || Array.isArray(of.value) ? own(of.value, name) : undefined;
    return value === undefined ? undefined : { value, path: [...of.path, name] };
  }

  #follow(target: string, from: DocumentPath): Located {
    const path = [...from, "$ref"];
    if (!target.startsWith("#/"))
      throw this.error(
        path,
        `"${target.slice(0, 200)}" is in another document; bundle them into one document`,
      );
    const segments = target.slice(2).split("/").map(decodeSegment);
    let value: Json | undefined = this.root;
    for (const segment of segments)
      value = typeof value === "object" && value !== null ? own(value, segment) : undefined;
    if (value === undefined) throw this.error(path, `"${target.slice(0, 200)}" does not exist`);
    return { value, path: segments };
  }

  #parse(): Json {
    if (/^\s*\{/.test(this.#text))
      try {
        return JSON.parse(this.#text) as Json;
      } catch {
        // The parser below reports the position. YAML also accepts text that JSON does not.
      }
    const { document, lines } = this.#readPositions();
    const [wrong] = document.errors;
    if (wrong) {
      const { line, col } = lines.linePos(wrong.pos[0]);
      const [reason = ""] = wrong.message.split(/ at line \d|\n/, 1);
      throw new DocumentError(`${this.#name}:${line}:${col}: ${reason}`);
    }
    try {
      return document.toJS({ maxAliasCount: MAX_ALIASES }) as Json;
    } catch (error) {
      throw new DocumentError(`${this.#name}:1:1: ${(error as Error).message}`);
    }
  }

  #readPositions() {
    if (this.#positions) return this.#positions;
    const lines = new LineCounter();
    const document = parseDocument(this.#text, { lineCounter: lines, prettyErrors: false });
    this.#positions = { document, lines };
    return this.#positions;
  }
}

/** Whether a value is an object and no list. */
export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const own = (value: object, name: string | number): Json | undefined =>
  Object.hasOwn(value, name) ? (value as Record<string | number, Json>)[name] : undefined;

const rangeStart = (node: unknown): number | undefined =>
  (node as { range?: readonly number[] | null } | null | undefined)?.range?.[0];

/** Decodes a segment of a JSON pointer in a URI fragment. */
function decodeSegment(segment: string): string {
  let decoded = segment;
  try {
    decoded = decodeURIComponent(segment);
  } catch {
    // A lone percent sign stands for itself.
  }
  return decoded.replaceAll("~1", "/").replaceAll("~0", "~");
}
