// Reads another gateway's config. Each value has its position, and values that were never read are
// reported at the end.
import { isMap, isScalar, isSeq, LineCounter, parseDocument, type Node } from "yaml";
import { fail } from "tollgate/plugin";

/**
 * exact: Tollgate has a setting with the same meaning. approximate: the meaning is nearly the same.
 * manual: requires a manual step. unsupported: no equivalent.
 */
export type FindingKind = "exact" | "approximate" | "manual" | "unsupported";

export interface ImportFinding {
  readonly kind: FindingKind;
  /** Path of the value: "model_list[0].litellm_params.rpm". */
  readonly at: string;
  /** Line number, from 1. */
  readonly line: number;
  readonly message: string;
}

export const FINDING_KINDS: readonly FindingKind[] = [
  "exact",
  "approximate",
  "manual",
  "unsupported",
];

interface ReadLog {
  readonly lines: ReadonlyMap<string, number>;
  readonly read: Set<string>;
  readonly findings: ImportFinding[];
}

const MAX_DEPTH = 64;

export class SourceValue {
  readonly value: unknown;
  readonly path: string;
  readonly #readLog: ReadLog;

  private constructor(value: unknown, at: string, book: ReadLog) {
    this.value = value;
    this.path = at;
    this.#readLog = book;
  }

  /** Parses YAML or JSON, because JSON is a subset of YAML. */
  static parse(text: string, file: string): SourceValue {
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
    recordLines(document.contents, "", { counter, lines });
    const value: unknown = document.toJS({ maxAliasCount: 100 });
    if (typeof value !== "object" || value === null || Array.isArray(value))
      fail("invalid", `Invalid config ${file}: it has no keys.`, { code: "usage" });
    return new SourceValue(value, "", { lines, read: new Set(), findings: [] });
  }

  get line(): number {
    let at = this.path;
    while (at !== "" && !this.#readLog.lines.has(at)) at = at.replace(/(\.[^.[]*|\[\d+\])$/, "");
    return this.#readLog.lines.get(at) ?? 1;
  }

  get findings(): readonly ImportFinding[] {
    return this.#readLog.findings;
  }

  /** Reports a finding at this value, and marks it as read. */
  report(kind: FindingKind, message: string): void {
    this.#readLog.read.add(this.path);
    this.#readLog.findings.push({ kind, at: this.path, line: this.line, message });
  }

  get(key: string): SourceValue {
    const mapping = isMapping(this.value) ? this.value : {};
    const value = Object.hasOwn(mapping, key) ? mapping[key] : undefined;
    return new SourceValue(value, this.path === "" ? key : `${this.path}.${key}`, this.#readLog);
  }

  /** Returns the first of several keys that exists. */
  firstOf(...keys: readonly string[]): SourceValue {
    return keys.map((key) => this.get(key)).find(({ exists }) => exists) ?? this.get(keys[0]!);
  }

  get exists(): boolean {
    return this.value !== undefined && this.value !== null;
  }

  /** Returns the value, and marks it as read. */
  readValue(): unknown {
    if (this.exists) this.#readLog.read.add(this.path);
    return this.value ?? undefined;
  }

  readText(): string | undefined {
    const value = this.readValue();
    return typeof value === "string" || typeof value === "number" ? String(value) : undefined;
  }

  /** Reads a number, or text that contains one. */
  readNumber(): number | undefined {
    const value = this.readValue();
    const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
    return typeof number === "number" && Number.isFinite(number) ? number : undefined;
  }

  get keys(): readonly string[] {
    return isMapping(this.value) ? Object.keys(this.value) : [];
  }

  readList(): readonly SourceValue[] {
    if (!Array.isArray(this.value)) return [];
    return this.value.map(
      (value, i) => new SourceValue(value, `${this.path}[${i}]`, this.#readLog),
    );
  }

  /** Reads a list of texts, or a single text as a list. */
  readTexts(): readonly string[] {
    const value = this.readValue();
    return [value ?? []].flat().map(String);
  }

  /**
   * Returns the values that no rule has read. If no part of a list or map was read, only the list
   * or map itself is returned.
   */
  unreadValues(): readonly SourceValue[] {
    const { read } = this.#readLog;
    if (read.has(this.path)) return [];
    const inner = [...this.keys.map((key) => this.get(key)), ...this.readList()];
    const touched = inner.some((each) => each.#isRead());
    // An empty list or map is not reported.
    if (inner.length === 0 && typeof this.value === "object") return [];
    if (inner.length === 0 || (!touched && this.path !== "")) return this.exists ? [this] : [];
    return inner.flatMap((each) => each.unreadValues());
  }

  #isRead(): boolean {
    if (this.#readLog.read.has(this.path)) return true;
    return [...this.keys.map((key) => this.get(key)), ...this.readList()].some((each) =>
      each.#isRead(),
    );
  }
}

const isMapping = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function recordLines(
  node: unknown,
  at: string,
  of: { counter: LineCounter; lines: Map<string, number> },
  depth = 0,
): void {
  const range = (node as Node | null)?.range;
  if (range && !of.lines.has(at)) of.lines.set(at, of.counter.linePos(range[0]).line);
  if (depth > MAX_DEPTH) return;
  if (isMap(node))
    for (const { key, value } of node.items) {
      const name = String(isScalar(key) ? key.value : key);
      const inner = at === "" ? name : `${at}.${name}`;
      const start = (key as Node | null)?.range?.[0];
      if (start !== undefined) of.lines.set(inner, of.counter.linePos(start).line);
      recordLines(value, inner, of, depth + 1);
    }
  else if (isSeq(node))
    for (const [i, item] of node.items.entries()) recordLines(item, `${at}[${i}]`, of, depth + 1);
}
