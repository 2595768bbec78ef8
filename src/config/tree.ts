// A YAML document as plain values, and for each path the place it came from. Structure is decided here and never again:
// interpolation happens later, on strings that are already leaves.
import { type Document, isAlias, isMap, isScalar, isSeq, type Node, type Scalar } from "yaml";
import { problem, type ProblemText } from "./problems.ts";
import type { SourceFinding } from "./source.ts";
import type { SourceFile, Spot } from "./spot.ts";

export interface NodePosition {
  /** None for an element of a list. */
  readonly key?: Spot;
  readonly value: Spot;
}

export interface Tree {
  value: unknown;
  /** By JSON pointer. */
  readonly places: Map<string, NodePosition>;
}

export type Mapping = Record<string, unknown>;

export const isMapping = (value: unknown): value is Mapping =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** A step down a JSON pointer. */
export const below = (pointer: string, key: string | number): string =>
  `${pointer}/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`;

export const steps = (pointer: string): string[] =>
  pointer
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));

export const within = (pointer: string, ancestor: string): boolean =>
  pointer === ancestor || pointer.startsWith(`${ancestor}/`);

export function valueAt(root: unknown, pointer: string): unknown {
  let value = root;
  for (const step of steps(pointer)) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, step))
      return undefined;
    value = (value as Mapping)[step];
  }
  return value;
}

/** What stands there, or the key of the nearest thing around it. */
export function locate(tree: Tree, pointer: string, side: "key" | "value" = "value") {
  const exact = tree.places.get(pointer);
  if (exact) return (side === "key" ? exact.key : undefined) ?? exact.value;
  for (let at = pointer; at !== ""; at = at.slice(0, at.lastIndexOf("/"))) {
    const place = tree.places.get(at);
    if (place) return place.key ?? place.value;
  }
  return undefined;
}

/** "providers.anthropic.with", "middleware.auth", "models.fast[1]": the path as a person would say it. */
export function pathOf(root: unknown, pointer: string): string {
  let value = root;
  let path = "";
  for (const step of steps(pointer)) {
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

/** A file's own values are bounded by its size. Aliases may multiply them: no config says this many by way of those. */
const MOST_COPIES = 20_000;
const DEEPEST = 64;
const FORBIDDEN = new Set(["__proto__", "constructor", "prototype"]);
const PLAIN_TAG = /^tag:yaml\.org,2002:(str|int|float|bool|null|map|seq)$/;

export function plant(
  document: Document,
  source: SourceFile,
): { tree: Tree; findings: readonly SourceFinding[] } {
  const places = new Map<string, NodePosition>();
  const findings: SourceFinding[] = [];
  let copies = 0;
  let aliases = 0;
  let exhausted = false;
  /** What we are inside of: an alias for it would never end. */
  const open = new Set<unknown>();
  const spotOf = (node: Node): Spot => ({
    source,
    start: node.range?.[0] ?? 0,
    end: node.range?.[1] ?? 0,
  });
  const find = (words: ProblemText, pointer: string, spot: Spot) =>
    findings.push({ words, file: source.file, pointer, spot });
  const hole = (words: ProblemText, pointer: string, spot: Spot): undefined => {
    findings.push({ words, file: source.file, pointer, spot, hole: true });
  };

  const grow = (node: unknown, pointer: string, depth: number, key?: Spot): unknown => {
    const here = node ? spotOf(node as Node) : key!;
    const spot = key && wraps(here) ? key : here;
    places.set(pointer, { value: spot, ...(key ? { key } : {}) });
    if (exhausted) return undefined;
    if (aliases > 0) copies++;
    if (copies > MOST_COPIES || depth > DEEPEST) {
      exhausted = true;
      return hole(copies > MOST_COPIES ? problem.tooMany() : problem.tooDeep(), pointer, spot);
    }
    if (isAlias(node)) {
      const target = node.resolve(document);
      if (!target) return hole(problem.unknownAlias(node.source), pointer, spot);
      if (open.has(target)) return hole(problem.aliasInside(node.source), pointer, spot);
      aliases++;
      const value = grow(target, pointer, depth + 1, key);
      aliases--;
      // Of the alias, not of what it stands for: here is where it is wrong.
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
        const down = below(pointer, name);
        if (FORBIDDEN.has(name)) find(problem.forbiddenKey(name), pointer, keySpot);
        else if (name.includes("${")) find(problem.interpolatedKey(name), pointer, keySpot);
        else if (Object.hasOwn(value, name))
          find(problem.duplicateKey(name, places.get(down)!.key!, source.file), down, keySpot);
        else value[name] = grow(pair.value, down, depth + 1, keySpot);
      }
      open.delete(node);
      return value;
    }
    if (isSeq(node)) {
      const value = node.items.map((item, i) => grow(item, below(pointer, i), depth + 1));
      open.delete(node);
      return value;
    }
    const value = isScalar(node) ? node.value : null;
    if (
      typeof value === "number" &&
      !(Number.isInteger(value) ? Number.isSafeInteger(value) : Number.isFinite(value))
    )
      return hole(problem.number(source.text.slice(spot.start, spot.end)), pointer, spot);
    return value;
  };
  const value = document.contents ? grow(document.contents, "", 0) : {};
  return { tree: { value, places }, findings };
}

/** Nothing, or more than a line: then the key says better where it is. */
function wraps({ source, start, end }: Spot): boolean {
  return start === end || source.lines.linePos(start).line !== source.lines.linePos(end).line;
}
