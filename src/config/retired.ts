// Keys of gateway.yaml that have gone. Each is understood for a year on: its value is taken where the new key stands, and a warning says which
// one that is. What stands here is the promise; a test counts its year.
import { problem } from "./problems.ts";
import type { Report } from "./substitute.ts";
import { isMapping, type Mapping, steps, type Tree, valueAt, within } from "./tree.ts";

export interface RetiredKey {
  /** Where it stood, and where the same value stands now: JSON pointers. */
  readonly from: string;
  readonly to: string;
  /** The day of the release in which it went, and the day from which on it is an unknown key. */
  readonly since: string;
  readonly until: string;
}

/** None has gone yet. */
export const RETIRED: readonly RetiredKey[] = [];

/** Before anything else is looked at. */
export function carryOver(tree: Tree, retired: readonly RetiredKey[], say: Report): void {
  for (const { from, to, until } of retired) {
    const value = valueAt(tree.value, from);
    if (value === undefined) continue;
    const taken = valueAt(tree.value, to) !== undefined;
    say(
      taken
        ? problem.retiredTwice(named(from), named(to))
        : problem.retired(named(from), named(to), until),
      from,
      "key",
    );
    drop(tree.value, from);
    if (!taken && !put(tree.value, to, value)) continue;
    for (const [at, place] of Array.from(tree.places)) {
      if (!within(at, from)) continue;
      tree.places.delete(at);
      if (!taken) tree.places.set(to + at.slice(from.length), place);
    }
  }
}

const named = (pointer: string): string => steps(pointer).join(".");

const parentOf = (pointer: string): string => pointer.slice(0, pointer.lastIndexOf("/"));

function drop(root: unknown, pointer: string): void {
  const holder = holderOf(root, parentOf(pointer));
  if (isMapping(holder)) delete holder[steps(pointer).at(-1)!];
}

/** What stands above it is made where it is not there; false: something else stands there. */
function put(root: unknown, pointer: string, value: unknown): boolean {
  let holder = root;
  for (const step of steps(parentOf(pointer))) {
    if (!isMapping(holder)) return false;
    holder = holder[step] ??= {};
  }
  if (!isMapping(holder)) return false;
  (holder as Mapping)[steps(pointer).at(-1)!] = value;
  return true;
}

const holderOf = (root: unknown, pointer: string): unknown =>
  pointer === "" ? root : valueAt(root, pointer);
