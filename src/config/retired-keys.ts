// Keys of gateway.yaml that have gone. Each is understood for a year on: its value is taken where the new key stands, and a warning says which
// one that is. What stands here is the promise; a test counts its year.
import { problem } from "./problems.ts";
import type { ReportProblem } from "./source/substitute-references.ts";
import {
  isMapping,
  type Mapping,
  pointerSegments,
  type ConfigTree,
  valueAt,
  isWithinPointer,
} from "./source/config-tree.ts";

export interface RetiredKey {
  /** Where it stood, and where the same value stands now: JSON pointers. */
  readonly from: string;
  readonly to: string;
  /** The day of the release in which it went, and the day from which on it is an unknown key. */
  readonly since: string;
  readonly until: string;
}

/** None has gone yet. */
export const RETIRED_KEYS: readonly RetiredKey[] = [];

/** Before anything else is looked at. */
export function migrateRetiredKeys(
  tree: ConfigTree,
  retired: readonly RetiredKey[],
  report: ReportProblem,
): void {
  for (const { from, to, until } of retired) {
    const value = valueAt(tree.value, from);
    if (value === undefined) continue;
    const isTaken = valueAt(tree.value, to) !== undefined;
    report(
      isTaken
        ? problem.retiredKeyAndReplacement(dottedPathOf(from), dottedPathOf(to))
        : problem.retiredKey(dottedPathOf(from), dottedPathOf(to), until),
      from,
      "key",
    );
    removeAt(tree.value, from);
    if (!isTaken && !setAt(tree.value, to, value)) continue;
    for (const [at, place] of Array.from(tree.positions)) {
      if (!isWithinPointer(at, from)) continue;
      tree.positions.delete(at);
      if (!isTaken) tree.positions.set(to + at.slice(from.length), place);
    }
  }
}

const dottedPathOf = (pointer: string): string => pointerSegments(pointer).join(".");

const parentPointer = (pointer: string): string => pointer.slice(0, pointer.lastIndexOf("/"));

function removeAt(root: unknown, pointer: string): void {
  const container = containerAt(root, parentPointer(pointer));
  if (isMapping(container)) delete container[pointerSegments(pointer).at(-1)!];
}

/** What stands above it is made where it is not there; false: something else stands there. */
function setAt(root: unknown, pointer: string, value: unknown): boolean {
  let container = root;
  for (const step of pointerSegments(parentPointer(pointer))) {
    if (!isMapping(container)) return false;
    container = container[step] ??= {};
  }
  if (!isMapping(container)) return false;
  (container as Mapping)[pointerSegments(pointer).at(-1)!] = value;
  return true;
}

const containerAt = (root: unknown, pointer: string): unknown =>
  pointer === "" ? root : valueAt(root, pointer);
