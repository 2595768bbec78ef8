// Converts a YAML document to plain values, with the position of each path. The structure is final
// after this step: interpolation happens later, and only in strings that are already leaves.
import { type Document, isAlias, isMap, isScalar, isSeq, type Node, type Scalar } from "yaml";
import { problem, type ProblemText } from "../problems.ts";
import type { ConfigFinding } from "./config-source.ts";
import type { SourceFile, SourceSpan } from "./source-span.ts";

export interface NodePosition {
  /** Unset for an element of a list. */
  readonly key?: SourceSpan;
  readonly value: SourceSpan;
}

export interface ConfigTree {
  value: unknown;
  /** Positions by JSON pointer. */
  readonly positions: Map<string, NodePosition>;
}

export type Mapping = Record<string, unknown>;

export const isMapping = (value: unknown): value is Mapping =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Appends a segment to a JSON pointer. */
export const childPointer = (pointer: string, key: string | number): string =>
  `${pointer}/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`;

export const pointerSegments = (pointer: string): string[] =>
  pointer
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));

export const isWithinPointer = (pointer: string, ancestor: string): boolean =>
  pointer === ancestor || pointer.startsWith(`${ancestor}/`);

export function valueAt(root: unknown, pointer: string): unknown {
  let value = root;
  for (const step of pointerSegments(pointer)) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, step))
      return undefined;
    value = (value as Mapping)[step];
  }
  return value;
}

/**
 * Returns the position of the value or key at a pointer, or of the key of its nearest existing
 * parent.
 */
export function locate(tree: ConfigTree, pointer: string, side: "key" | "value" = "value") {
  const exact = tree.positions.get(pointer);
  if (exact) return (side === "key" ? exact.key : undefined) ?? exact.value;
  for (let at = pointer; at !== ""; at = at.slice(0, at.lastIndexOf("/"))) {
    const place = tree.positions.get(at);
    if (place) return place.key ?? place.value;
  }
  return undefined;
}

/**
 * Returns the path for display, such as "providers.anthropic.with", "middleware.auth", or
 * "models.fast[1]".
 */
export function toDisplayPath(root: unknown, pointer: string): string {
  let value = root;
  let path = "";
  for (const step of pointerSegments(pointer)) {
    const list = Array.isArray(value);
    value = isMapping(value) || list ? (value as Mapping)[step] : undefined;
    const name = isMapping(value) ? (value["name"] ?? value["use"]) : value;
    const listed = list && /^(frontends|middleware|providers\..*\.credentials)$/.test(path);
    if (listed && typeof name === "string") path += `.${name}`;
    else if (list) path += `[${step}]`;
    else path += path === "" ? step : `.${step}`;
  }
  return path;
}

/**
 * Maximum number of values that aliases may add. A file's own values are bounded by its size, but
 * aliases multiply them.
 */
const MAX_ALIAS_COPIES = 20_000;
const MAX_DEPTH = 64;
const FORBIDDEN_KEYS = new Set(["__proto__", "constructor", "prototype"]);
const PLAIN_TAG = /^tag:yaml\.org,2002:(str|int|float|bool|null|map|seq)$/;

export function buildTree(
  document: Document,
  source: SourceFile,
): { tree: ConfigTree; findings: readonly ConfigFinding[] } {
  const places = new Map<string, NodePosition>();
  const findings: ConfigFinding[] = [];
  let copies = 0;
  let aliases = 0;
  let exhausted = false;
  /** Nodes that contain the current node. Resolving an alias to one of them would never end. */
  const open = new Set<unknown>();
  const spotOf = (node: Node): SourceSpan => ({
    source,
    start: node.range?.[0] ?? 0,
    end: node.range?.[1] ?? 0,
  });
  const find = (words: ProblemText, pointer: string, spot: SourceSpan) =>
    findings.push({ words, file: source.file, pointer, span: spot });
  const hole = (words: ProblemText, pointer: string, spot: SourceSpan): undefined => {
    findings.push({ words, file: source.file, pointer, span: spot, isMissingValue: true });
  };

  const grow = (node: unknown, pointer: string, depth: number, key?: SourceSpan): unknown => {
    const here = node ? spotOf(node as Node) : key!;
    const spot = key && isEmptyOrMultiline(here) ? key : here;
    places.set(pointer, { value: spot, ...(key ? { key } : {}) });
    if (exhausted) return undefined;
    if (aliases > 0) copies++;
    if (copies > MAX_ALIAS_COPIES || depth > MAX_DEPTH) {
      exhausted = true;
      return hole(
        copies > MAX_ALIAS_COPIES ? problem.tooManyValues() : problem.tooDeep(),
        pointer,
        spot,
      );
    }
    if (isAlias(node)) {
      const target = node.resolve(document);
      if (!target) return hole(problem.unknownAlias(node.source), pointer, spot);
      if (open.has(target)) return hole(problem.recursiveAlias(node.source), pointer, spot);
      aliases++;
      const value = grow(target, pointer, depth + 1, key);
      aliases--;
      // The position of the alias is used instead of its target's position, because the alias is
      // the mistake.
      places.set(pointer, { value: here, ...(key ? { key } : {}) });
      return value;
    }
    const tag = (node as Node | null)?.tag;
    if (tag !== undefined && !PLAIN_TAG.test(tag)) return hole(problem.tag(tag), pointer, spot);
    if (isMap(node) || isSeq(node)) open.add(node);
    if (isMap(node)) {
      const value: Mapping = {};
      for (const pair of node.items) {
        const name = String((pair.key as Scalar).value);
        const keySpot = spotOf(pair.key as Node);
        const down = childPointer(pointer, name);
        if (FORBIDDEN_KEYS.has(name)) find(problem.forbiddenKey(name), pointer, keySpot);
        else if (name.includes("${")) find(problem.interpolatedKey(name), pointer, keySpot);
        else if (Object.hasOwn(value, name))
          find(problem.duplicateKey(name, places.get(down)!.key!, source.file), down, keySpot);
        else value[name] = grow(pair.value, down, depth + 1, keySpot);
      }
      open.delete(node);
      return value;
    }
    if (isSeq(node)) {
      const value = node.items.map((item, i) => grow(item, childPointer(pointer, i), depth + 1));
      open.delete(node);
      return value;
    }
    const value = isScalar(node) ? node.value : null;
    if (
      typeof value === "number" &&
      !(Number.isInteger(value) ? Number.isSafeInteger(value) : Number.isFinite(value))
    )
      return hole(problem.unsafeNumber(source.text.slice(spot.start, spot.end)), pointer, spot);
    return value;
  };
  const value = document.contents ? grow(document.contents, "", 0) : {};
  return { tree: { value, positions: places }, findings };
}

/**
 * Whether the span is empty or longer than a line. For such a span, the position of the key is
 * reported instead.
 */
function isEmptyOrMultiline({ source, start, end }: SourceSpan): boolean {
  return start === end || source.lines.linePos(start).line !== source.lines.linePos(end).line;
}
