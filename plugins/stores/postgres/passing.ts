// A batch through the gate, part of it from slices; and what is known of this node after it, whatever came back.
import type { StoreCommand } from "tollgate/plugin";
import type { Ample } from "./ample.ts";
import type { Plan } from "./calls.ts";
import type { Denials } from "./denials.ts";
import type { Ask, Line } from "./line.ts";
import { linkOf, pass, remember, type Missed, type Said } from "./plain.ts";
import type { Slices, Split } from "./slices.ts";
import type { ThisNode } from "./this-node.ts";
import { fenced, isAway, isKnown, isUnsliced } from "./trouble.ts";
import type { WriterSettings } from "./writing-door.ts";

export interface Passing {
  readonly line: Line;
  readonly of: WriterSettings;
  readonly node: ThisNode;
  readonly slices: Slices | undefined;
  readonly denials: Denials | undefined;
  readonly ample: Ample;
  /** The moment that decides. */
  now(at: number): number;
}

/** Undefined: what is really there has to be read first. */
export async function passed(
  ask: Ask,
  { line, of: settings, node, slices, denials, ample }: Passing,
  of: Plan,
  batch: readonly StoreCommand[],
): Promise<Exclude<Said, Missed> | undefined> {
  const me = node.writing();
  const hash = linkOf(of, me.head);
  const at =
    settings.clock === "command" ? (batch.find((c) => c.do !== "alive")?.at ?? null) : null;
  const done = () => remember(of, node.mine, node.terms);
  node.pending = { head: hash, done };
  const began = performance.now();
  const split = slices?.split(of.sums, line.made);
  // As the gate says of meters: before what the batch takes.
  const before = new Map(split?.sliced.map(({ id }) => [id, slices!.state(id)]));
  const counted = split && slices!.send(split.sliced);
  try {
    const metered = split ? { ...of, sums: split.metered } : of;
    const sure = ample.of(metered.sums, line.made);
    const link = { epoch: me.epoch, n: me.n + 1, hash, at, sure, terms: node.terms };
    const said = await pass(ask, settings, metered, link, split?.sliced);
    node.pending = undefined;
    counted?.(said.how === "ok");
    if (!("versions" in said)) {
      if (said.how === "fenced") return fenced();
      await node.findOut(ask);
      return undefined;
    }
    node.saw(said, performance.now() - began);
    if (said.how === "ok" || said.how === "done") {
      Object.assign(node.me!, { n: me.n + 1, head: hash });
      done();
      if (said.how === "ok") ample.heard(metered.sums, said.states);
    }
    return split && "states" in said ? stated(said, of, split, before) : said;
  } catch (error) {
    // What has become of it is found out: nothing is refused meanwhile that may have been let through.
    denials?.clear();
    ample.clear();
    if (!isAway(error)) {
      node.pending = undefined;
      counted?.(false);
    }
    if (isKnown(error)) node.terms.forget();
    else if (isUnsliced(error)) slices!.forget();
    else throw error;
    return undefined;
  }
}

/** A state for each meter, also for those that the gate was not asked of. */
function stated(
  said: Extract<Said, { states: readonly string[] }>,
  { sums }: Plan,
  { metered }: Split,
  sliced: ReadonlyMap<string, string>,
): typeof said {
  const states = new Map(metered.map(({ id }, i) => [id, said.states[i]!]));
  for (const [id, state] of sliced) states.set(id, state);
  return { ...said, states: sums.map(({ id }) => states.get(id)!) };
}
