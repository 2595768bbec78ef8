// What a client reads when a name leads to no candidate: names that this key may use and that would be answered, and
// nothing that only the operator can know of.
import { near } from "../../catalogue/near.ts";
import { fail } from "../../model/error.ts";
import type { Work } from "../../model/work.ts";
import type { ResolverInputs, NameLookup, May } from "./resolution.ts";

/** How many names are offered: near ones, or any. */
const SHOWN = 3;
const KNOWN = 5;

interface Unanswered extends NameLookup {
  readonly inputs: ResolverInputs;
  readonly work: Work;
  readonly model: string;
  readonly may: May;
  /** Another name, and there is a candidate for it. */
  answers(name: string): boolean;
}

export function unanswered(of: Unanswered): never {
  const { model, work, may, inputs } = of;
  const named = may(model);
  const other = of.wrongKind.find(({ id }) => named || may(id));
  if (other !== undefined) {
    const right = inputs.doors.get(other.kind);
    const noun =
      inputs.catalogue.works.get(other.kind)?.noun ?? `a model of the kind ${other.kind}`;
    return fail("invalid", `${other.id} is ${noun}${right ? `: ask for it at ${right}` : ""}.`, {
      param: "model",
      code: "wrong_endpoint",
    });
  }
  const reasons = [
    ...of.absent.map(({ id, provider }) => `${id}: ${provider} is not mounted`),
    ...of.unserved,
  ];
  const because = named && reasons.length > 0 ? ` (${reasons.join("; ")})` : "";
  const what =
    of.route && named ? `Nothing answers for ${model} here` : `There is no model ${model}`;
  const line = !work.listed && !of.route && of.ids.length === 0 ? lineFor(model) : "";
  return fail("not_found", `${what}${because}.${advice(of)}${line}`, {
    param: "model",
    code: "model_not_found",
  });
}

function advice({ inputs, model, work, may, answers }: Unanswered): string {
  const names = [...inputs.models.keys()].filter((name) => !name.includes("*") && may(name));
  const likely = new Set([...near(model, names), ...inputs.catalogue.near(model, work.kind, may)]);
  const nearest = [...likely].filter(answers);
  if (nearest.length > 0) return ` Near it: ${nearest.slice(0, SHOWN).join(", ")}.`;
  const known = names.slice(0, 2 * KNOWN).filter(answers);
  return known.length > 0 ? ` Known names: ${known.slice(0, KNOWN).join(", ")}.` : "";
}

/** The line of gateway.yaml that would add this name. */
function lineFor(model: string): string {
  const slash = model.indexOf("/");
  const provider = model.slice(0, slash);
  return slash > 0
    ? ` To add the provider, in gateway.yaml under providers: "${provider}: { use: ${provider}, with: { api_key: … } }".`
    : ` To add the name, in gateway.yaml under models: "${model}: [<provider>/<model>]".`;
}
