// Another gateway's config as it is read: each value knows where it stands, and what was never read is known at the end.
import { isMap, isScalar, isSeq, LineCounter, parseDocument, type Node } from "yaml";
import { fail } from "../../model/error.ts";

/** exact: it means the same here. approximate: nearly. manual: something is left to do. unsupported: there is no equal. */
export type FindingKind = "exact" | "approximate" | "manual" | "unsupported";

export interface ImportFinding {
  readonly kind: FindingKind;
  /** "model_list[0].litellm_params.rpm" */
  readonly at: string;
  /** From 1. */
  readonly line: number;
  readonly message: string;
}

export const KINDS: readonly FindingKind[] = ["exact", "approximate", "manual", "unsupported"];

interface Book {
  readonly lines: ReadonlyMap<string, number>;
  readonly read: Set<string>;
  readonly findings: ImportFinding[];
}

const MOST_DEPTH = 64;

export class Said {
  readonly value: unknown;
  readonly at: string;
  readonly #book: Book;

  private constructor(value: unknown, at: string, book: Book) {
    this.value = value;
    this.at = at;
    this.#book = book;
  }

  /** JSON is YAML. */
  static of(text: string, file: string): Said {
    const counter = new LineCounter();
    const document = parseDocument(text, {
      lineCounter: counter,
      schema: "core",
      prettyErrors: false,
    });
    const [flaw] = document.errors;
    if (flaw)
      fail("invalid", `${file}:${counter.linePos(flaw.pos[0]).line}: ${flaw.message}`, {
        code: "usage",
      });
    const lines = new Map<string, number>();
    place(document.contents, "", { counter, lines });
    const value: unknown = document.toJS({ maxAliasCount: 100 });
    if (typeof value !== "object" || value === null || Array.isArray(value))
      fail("invalid", `${file} is no config: it has no keys.`, { code: "usage" });
    return new Said(value, "", { lines, read: new Set(), findings: [] });
  }

  get line(): number {
    let at = this.at;
    while (at !== "" && !this.#book.lines.has(at)) at = at.replace(/(\.[^.[]*|\[\d+\])$/, "");
    return this.#book.lines.get(at) ?? 1;
  }

  get findings(): readonly ImportFinding[] {
    return this.#book.findings;
  }

  /** Said of this place. It counts as read. */
  find(kind: FindingKind, message: string): void {
    this.#book.read.add(this.at);
    this.#book.findings.push({ kind, at: this.at, line: this.line, message });
  }

  get(key: string): Said {
    const mapping = isMapping(this.value) ? this.value : {};
    const value = Object.hasOwn(mapping, key) ? mapping[key] : undefined;
    return new Said(value, this.at === "" ? key : `${this.at}.${key}`, this.#book);
  }

  /** The first of several spellings that is there. */
  any(...keys: readonly string[]): Said {
    return keys.map((key) => this.get(key)).find(({ isThere }) => isThere) ?? this.get(keys[0]!);
  }

  get isThere(): boolean {
    return this.value !== undefined && this.value !== null;
  }

  /** The value, which counts as read. */
  take(): unknown {
    if (this.isThere) this.#book.read.add(this.at);
    return this.value ?? undefined;
  }

  text(): string | undefined {
    const value = this.take();
    return typeof value === "string" || typeof value === "number" ? String(value) : undefined;
  }

  /** A number, or text that is one. */
  number(): number | undefined {
    const value = this.take();
    const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
    return typeof number === "number" && Number.isFinite(number) ? number : undefined;
  }

  get keys(): readonly string[] {
    return isMapping(this.value) ? Object.keys(this.value) : [];
  }

  list(): readonly Said[] {
    if (!Array.isArray(this.value)) return [];
    return this.value.map((value, i) => new Said(value, `${this.at}[${i}]`, this.#book));
  }

  /** Words, from a list or from one. */
  texts(): readonly string[] {
    const value = this.take();
    return [value ?? []].flat().map(String);
  }

  /** What no rule has looked at: the outermost place each. */
  unread(): readonly Said[] {
    const { read } = this.#book;
    if (read.has(this.at)) return [];
    const inner = [...this.keys.map((key) => this.get(key)), ...this.list()];
    const touched = inner.some((each) => each.#isTouched());
    // An empty list or map says nothing.
    if (inner.length === 0 && typeof this.value === "object") return [];
    if (inner.length === 0 || (!touched && this.at !== "")) return this.isThere ? [this] : [];
    return inner.flatMap((each) => each.unread());
  }

  #isTouched(): boolean {
    if (this.#book.read.has(this.at)) return true;
    return [...this.keys.map((key) => this.get(key)), ...this.list()].some((each) =>
      each.#isTouched(),
    );
  }
}

const isMapping = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function place(
  node: unknown,
  at: string,
  of: { counter: LineCounter; lines: Map<string, number> },
  depth = 0,
): void {
  const range = (node as Node | null)?.range;
  if (range && !of.lines.has(at)) of.lines.set(at, of.counter.linePos(range[0]).line);
  if (depth > MOST_DEPTH) return;
  if (isMap(node))
    for (const { key, value } of node.items) {
      const name = String(isScalar(key) ? key.value : key);
      const inner = at === "" ? name : `${at}.${name}`;
      const start = (key as Node | null)?.range?.[0];
      if (start !== undefined) of.lines.set(inner, of.counter.linePos(start).line);
      place(value, inner, of, depth + 1);
    }
  else if (isSeq(node))
    for (const [i, item] of node.items.entries()) place(item, `${at}[${i}]`, of, depth + 1);
}
