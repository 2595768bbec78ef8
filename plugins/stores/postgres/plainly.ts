// A batch by the plain way, in rounds: those that do not fit are refused, and the others asked once more.
import type { StoreCommand, Verdict } from "tollgate/plugin";
import { atOnce, plan, type Plan } from "./calls.ts";
import type { Ask } from "./line.ts";
import { passed, type Passing } from "./passing.ts";
import { inOrder, judged, type Said } from "./plain.ts";

/** Of a batch that was full, before it is decided under locks. */
const ROUNDS = 8;
/** Others give back within a second or so what they have set aside. */
const SOON_MS = 1_000;

/** Undefined: this batch has to go the exact way. */
export async function plainly(
  ask: Ask,
  by: Passing,
  batch: readonly StoreCommand[],
): Promise<readonly Verdict[] | undefined> {
  const { line, node, slices, denials } = by;
  const refused =
    denials?.of(batch, node.mine, { made: line.made, at: by.now(0) }) ?? new Map<string, Verdict>();
  let of = planned(by, batch, refused);
  for (let round = 0; of && round < ROUNDS; round++) {
    if (of.steps.length + of.heard.length === 0) return inOrder(batch, refused);
    const said: Said | undefined = await passed(ask, by, of, batch);
    if (!said || said.how === "look") return undefined;
    if (said.how === "done") return inOrder(batch, refused);
    if (!("states" in said)) return undefined;
    const verdicts = judged(of, said);
    if (said.how === "ok") {
      slices?.touch(of.sums);
      denials?.passed(of);
      return inOrder(batch, new Map([...verdicts, ...refused]));
    }
    const denied = of.steps.filter(({ command }) => verdicts.get(command.attempt)?.ok === false);
    if (denied.length === 0) return undefined;
    const ids = new Set(denied.flatMap(({ taken }) => taken.map(([id]) => id)));
    // Slices of budgets at which calls were refused are asked back.
    const eased = await slices?.ease(ask, node.writing().instance, [...ids]);
    // There is more room than there was.
    if (eased === "own") continue;
    for (const step of denied) {
      const verdict = verdicts.get(step.command.attempt)!;
      refused.set(step.command.attempt, eased ? sooner(verdict) : verdict);
      if (!eased) denials?.note(step, verdict, said.t);
    }
    of = planned(by, batch, refused);
  }
  return undefined;
}

function planned(
  { of: { clock }, node, now }: Passing,
  batch: readonly StoreCommand[],
  refused: ReadonlyMap<string, Verdict>,
): Plan | undefined {
  if (clock === "command" && !atOnce(batch)) return undefined;
  const asked =
    refused.size === 0 ? batch : batch.filter((c) => !("attempt" in c && refused.has(c.attempt)));
  return plan(asked, node.mine, node.writing().instance, now, node.terms);
}

const sooner = (verdict: Verdict): Verdict =>
  verdict.ok ? verdict : { ...verdict, retryAfterMs: Math.min(verdict.retryAfterMs, SOON_MS) };
