// The sums of a stretch of time, small and exact: a text that is read in no time, merged with others, and says the same for the same
// rows whatever their order was. What closes a day, and what stands for rows that are gone, is this.
import type { HeadersOut } from "../plugin/index.ts";
import { Amounts } from "./amounts.ts";
import { factsOf, TELLS, type Depth, type RowFacts, type Summand } from "./facts.ts";

/** Sums by everything that a depth still tells. */
export interface Subtotals {
  readonly depth: Depth;
  /** Rows that were added, by way of other sums too. */
  readonly rows: number;
  /** How many groups. */
  readonly size: number;
  /** A settle or a correction. */
  add(row: Summand): void;
  /** The same with facts that are made once for many rows. */
  addTo(facts: RowFacts, row: Pick<Summand, "kind" | "costNano" | "state" | "usage">): void;
  /** All of another one, which tells as much or more. */
  take(other: Subtotals): void;
  groups(): Iterable<readonly [RowFacts, Amounts]>;
  /** What `readSubtotals` reads. */
  text(): string;
}

/** Without any rows. */
export const createSubtotals = (depth: Depth): Subtotals => new GroupedSums(depth);

interface Group {
  readonly facts: RowFacts;
  readonly amounts: Amounts;
}

/** One text for the same labels, whatever their order. */
const labelsText = (labels: HeadersOut): string => {
  const names = Object.keys(labels).filter((name) => labels[name] !== undefined);
  return names.length === 0
    ? ""
    : JSON.stringify(names.sort().map((name) => [name, labels[name]!] as const));
};
const labelsOf = (text: string): HeadersOut =>
  text === "" ? {} : (Object.fromEntries(JSON.parse(text) as [string, string][]) as HeadersOut);

/** In this order they stand in the text; null is absent, or not told. */
function names(of: RowFacts, depth: Depth): (string | null)[] {
  const { calls, keys, labels } = TELLS[depth];
  const call = (text: string | null) => (calls ? text : null);
  return [
    call(of.provider),
    call(of.model),
    call(of.credential),
    call(of.frontend),
    call(of.outcome),
    of.state,
    call(of.price),
    ...(keys ? [of.key, of.account ?? null] : []),
    ...(labels ? [labelsText(of.labels)] : []),
  ];
}
const namesAt = (depth: Depth): number =>
  7 + (TELLS[depth].keys ? 2 : 0) + (TELLS[depth].labels ? 1 : 0);
const factsFrom = (said: readonly (string | null)[]): RowFacts => ({
  provider: said[0] ?? "",
  model: said[1] ?? "",
  credential: said[2] ?? "",
  frontend: said[3] ?? "",
  outcome: said[4] ?? "",
  state: said[5] as RowFacts["state"],
  price: said[6] ?? null,
  key: said[7] ?? "",
  account: said[8] ?? undefined,
  labels: labelsOf(said[9] ?? ""),
});

/** What facts still tell at a depth, and the name of their group there. */
interface Projection {
  readonly id: string;
  readonly facts: RowFacts;
}
/** By depth; the same facts are summed up again and again. On the facts themselves: a table beside them costs more than it spares. */
const TOLD = Symbol("told");
type Projections = { [D in Depth]: Projection | undefined };
type Known = RowFacts & { [TOLD]?: Projections };
const NOTHING_YET: Projections = {
  calls: undefined,
  holders: undefined,
  tags: undefined,
  keys: undefined,
  labels: undefined,
};

function projected(facts: Known, depth: Depth): Projection {
  const known = (facts[TOLD] ??= { ...NOTHING_YET });
  let projection = known[depth];
  if (!projection) {
    const said = names(facts, depth);
    const told: Known = factsFrom(said);
    projection = known[depth] = { id: JSON.stringify(said), facts: told };
    // What it tells at its own depth is itself.
    told[TOLD] = { ...NOTHING_YET, [depth]: projection };
  }
  return projection;
}

class GroupedSums implements Subtotals {
  readonly depth: Depth;
  rows = 0;
  readonly #groups = new Map<string, Group>();
  /** Facts that were asked for before, by themselves. */
  readonly #known = new Map<RowFacts, Group>();

  constructor(depth: Depth) {
    this.depth = depth;
  }

  get size(): number {
    return this.#groups.size;
  }

  add(row: Summand): void {
    this.rows++;
    this.#group(factsOf(row)).amounts.row(row);
  }

  addTo(facts: RowFacts, row: Parameters<Amounts["row"]>[0]): void {
    this.rows++;
    let group = this.#known.get(facts);
    if (!group) this.#known.set(facts, (group = this.#group(facts)));
    group.amounts.row(row);
  }

  take(other: Subtotals): void {
    this.rows += other.rows;
    for (const [facts, amounts] of other.groups()) this.#group(facts).amounts.add(amounts);
  }

  /** As it is read from a text. */
  put(facts: RowFacts, amounts: Amounts): void {
    this.#group(facts).amounts.add(amounts);
  }

  *groups(): Generator<readonly [RowFacts, Amounts], void> {
    for (const { facts, amounts } of this.#groups.values()) yield [facts, amounts];
  }

  text(): string {
    const words = new Map<string, number>();
    const word = (text: string | null): number => {
      if (text === null) return -1;
      let place = words.get(text);
      if (place === undefined) words.set(text, (place = words.size));
      return place;
    };
    const groups = [...this.#groups]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, { facts, amounts }]) => [
        ...names(facts, this.depth).map(word),
        amounts.calls,
        amounts.unpriced,
        String(amounts.costNano),
        ...[...amounts.counts()].flatMap(([unit, whole, parts]) => [word(unit), whole, parts]),
      ]);
    return JSON.stringify({ depth: this.depth, rows: this.rows, groups, words: [...words.keys()] });
  }

  #group(facts: RowFacts): Group {
    const { id, facts: told } = projected(facts, this.depth);
    let group = this.#groups.get(id);
    if (!group) this.#groups.set(id, (group = { facts: told, amounts: new Amounts() }));
    return group;
  }
}

type Item = number | string;
interface Text {
  readonly depth: Depth;
  readonly rows: number;
  readonly groups: readonly (readonly Item[])[];
  readonly words: readonly string[];
}

/** Each group of a text, without making sums of them again. Throws for what is no such text. */
export function* groupsOf(text: string): Generator<readonly [RowFacts, Amounts], void> {
  const { depth, groups, words } = JSON.parse(text) as Text;
  const many = namesAt(depth);
  for (const group of groups) {
    const said: (string | null)[] = [];
    for (let i = 0; i < many; i++) said.push(words[group[i] as number] ?? null);
    const amounts = new Amounts();
    const facts = factsFrom(said);
    amounts.calls = group[many] as number;
    amounts.unpriced = group[many + 1] as number;
    amounts.costNano = BigInt(group[many + 2]!);
    if (facts.state === "estimated") amounts.estimated = amounts.calls;
    for (let i = many + 3; i < group.length; i += 3)
      amounts.count(words[group[i] as number]!, group[i + 1] as number, group[i + 2] as number);
    yield [facts, amounts];
  }
}

/** From its text. Throws for what is none. */
export function readSubtotals(text: string): Subtotals {
  const { depth, rows } = JSON.parse(text) as Text;
  const sums = new GroupedSums(depth);
  for (const [facts, amounts] of groupsOf(text)) sums.put(facts, amounts);
  sums.rows = rows;
  return sums;
}
