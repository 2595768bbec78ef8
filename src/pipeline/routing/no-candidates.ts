// Creates the error for a client when a name resolves to no candidate. It suggests names that this
// key may use and that have candidates, and reveals nothing that only the operator may know.
import { suggestNames } from "../../catalog/suggest-names.ts";
import { fail } from "../../model/error.ts";
import type { OperationSpec } from "../../model/operations/operation-spec.ts";
import type { ResolverInputs, NameLookup, IsNameAllowed } from "./resolution.ts";

/** Maximum number of suggested names. Similar names come first. */
const MAX_SUGGESTIONS = 3;
const MAX_KNOWN_NAMES = 5;

interface FailedLookup extends NameLookup {
  readonly inputs: ResolverInputs;
  readonly operationSpec: OperationSpec;
  readonly model: string;
  readonly isAllowed: IsNameAllowed;
  /** Whether another name has candidates. */
  hasCandidates(name: string): boolean;
}

export function throwModelNotFound(of: FailedLookup): never {
  const { model, operationSpec, isAllowed, inputs } = of;
  const named = isAllowed(model);
  const other = of.wrongOperation.find(({ id }) => named || isAllowed(id));
  if (other !== undefined) {
    const right = inputs.pathsByOperation.get(other.operation);
    const noun =
      inputs.catalog.operations.get(other.operation)?.noun ?? `a model of type ${other.operation}`;
    return fail(
      "invalid",
      `${other.id} is ${noun}${right ? `. Send requests for it to ${right}` : ""}.`,
      {
        param: "model",
        code: "wrong_endpoint",
      },
    );
  }
  const reasons = [
    ...of.unmounted.map(({ id, provider }) => `${id}: ${provider} is not configured`),
    ...of.unserved,
  ];
  const because = named && reasons.length > 0 ? ` (${reasons.join("; ")})` : "";
  const what = of.route && named ? `No provider serves ${model}` : `Model ${model} not found`;
  const line =
    !operationSpec.requiresCatalogEntry && !of.route && of.ids.length === 0
      ? configLineFor(model)
      : "";
  return fail("not_found", `${what}${because}.${similarNamesHint(of)}${line}`, {
    param: "model",
    code: "model_not_found",
  });
}

function similarNamesHint({
  inputs,
  model,
  operationSpec,
  isAllowed,
  hasCandidates,
}: FailedLookup): string {
  const names = [...inputs.models.keys()].filter((name) => !name.includes("*") && isAllowed(name));
  const likely = new Set([
    ...suggestNames(model, names),
    ...inputs.catalog.suggest(model, operationSpec.name, isAllowed),
  ]);
  const nearest = [...likely].filter(hasCandidates);
  if (nearest.length > 0) return ` Similar names: ${nearest.slice(0, MAX_SUGGESTIONS).join(", ")}.`;
  const known = names.slice(0, 2 * MAX_KNOWN_NAMES).filter(hasCandidates);
  return known.length > 0 ? ` Known names: ${known.slice(0, MAX_KNOWN_NAMES).join(", ")}.` : "";
}

/** Returns the line of gateway.yaml that would add this name. */
function configLineFor(model: string): string {
  const slash = model.indexOf("/");
  const provider = model.slice(0, slash);
  return slash > 0
    ? ` To add the provider, add "${provider}: { use: ${provider}, with: { api_key: … } }" under providers in gateway.yaml.`
    : ` To add the name, add "${model}: [<provider>/<model>]" under models in gateway.yaml.`;
}
