// What leaves is what was looked at: state, models, accounts and privacy are judged on the body that leaves, on both lanes, just
// before it does. The tables are in protocols/references; here stands what may be done with what they find.
import { wallClock } from "../../lib/time/wall-clock.ts";
import { satisfies } from "../../catalog/data-policy.ts";
import { fail } from "../../model/error.ts";
import type { ModelInfo } from "../../model/facts.ts";
import type { References } from "../../plugin/references.ts";
import {
  referencedFeatures,
  findBlockedReference,
  referencedModels,
  rejectReference,
} from "../../protocols/references/index.ts";
import type { HostCall } from "../exchange/call.ts";
import type { HostExchange } from "../exchange/exchange.ts";
import type { OutgoingRequest } from "./outgoing-request.ts";
import { matchesPattern } from "../../catalog/pattern.ts";
import { effectivePolicyOf } from "../privacy/candidate-policy.ts";
import { verifyPolicy, rejectUnreviewedFields } from "../privacy/zero-retention.ts";

/** Before a request is written for a provider: the answer must not depend on what cannot be said there. */
export function checkBeforeEncoding(call: HostCall): void {
  const x = call.exchange;
  const { facts } = x["~"].receivedBody!;
  const native = call.protocol === null;
  const { references = [] } = facts;
  if (call.mode === "translated" && references.length > 0) {
    checkStateReferences(call, references);
    if (call.protocol !== x.protocol) rejectProviderOnlyTools(references);
  }
  // Only the plugin sees what leaves there: so what it is given must be what may leave.
  if (native && x.privacy !== "off") rejectUnreviewedFields(call, x.body, x["~"].frontend.protocol);
}

/** Some tools have a field of their own, such as `mcp_servers`. They are refused as tools are, and by that field's name. */
function rejectProviderOnlyTools(named: References): void {
  for (const { type, path } of named)
    if (type === "hosted" && (path === "mcp_servers" || path === "mcpServers"))
      fail("unsupported", `${path} run at their own provider, or are known to it alone.`, {
        param: path,
        code: "unsupported_tool",
      });
}

/** The last look at a request: nothing changes it after this. */
export function checkBeforeSending(call: HostCall, out: OutgoingRequest): void {
  const named = out.references();
  if (named.length > 0) {
    for (const one of named)
      if (one.type === "account")
        fail(
          "unsupported",
          `${one.path} names an account, which is the gateway's own. Leave it out.`,
          {
            param: one.path,
            code: "unsupported_parameter",
          },
        );
    checkStateReferences(call, named);
    checkReferencedModels(call, named);
  }
  verifyPolicy(call, out);
}

/** A client that speaks another protocol than the provider cannot mean state of that provider. */
function checkStateReferences(call: HostCall, named: References): void {
  const x = call.exchange;
  const isSameProtocol = call.protocol === x.protocol;
  const isPinned = x["~"].receivedBody!.pinnedTarget !== undefined;
  const statefulReference = findBlockedReference(named, {
    stateMode: isSameProtocol ? call.stateMode : "reject",
    isBoundToKey: isPinned,
  });
  if (statefulReference) rejectReference(statefulReference);
}

/** A body may name more models than its own. The key must be allowed each of them, and privacy holds for each. */
function checkReferencedModels(call: HostCall, named: References): void {
  const x = call.exchange;
  for (const info of findReferencedModels(call, named)) {
    const id = `${call.provider}/${info.model}`;
    // A preset that is part of the model's own name was allowed with it.
    if (!call.model.endsWith(info.model) && !isModelAllowed(x, id, info.model))
      fail(
        "forbidden",
        `This key may not use ${id}, which this request names beside its own model.`,
        {
          param: named.find((one) => one.type === "model" && one.model === info.model)!.path,
          code: "model_not_allowed",
        },
      );
    if (x.privacy === "off") continue;
    if (
      !satisfies(
        x.privacy,
        effectivePolicyOf(call.candidate["~"], info, wallClock(), [...referencedFeatures(named)]),
      )
    )
      fail(
        "privacy",
        `${id}, which this request names, does not satisfy Service-ZDR: ${x.privacy}.`,
        {
          param: "Service-ZDR",
          code: "zdr_unavailable",
        },
      );
  }
}

/** The models that a body names beside its own, as this provider has them: any of them may answer, and be paid. */
export const findReferencedModels = (call: HostCall, named: References): readonly ModelInfo[] =>
  referencedModels(named).map(
    (model) => call.exchange["~"].gen.catalog.find(call.provider, model).info,
  );

/** By its id here, or by a name of the gateway's that leads to it. */
function isModelAllowed(x: HostExchange, id: string, name: string): boolean {
  const allowed = x.identity?.models;
  if (!allowed) return true;
  const fits = (one: string) => allowed.some((pattern) => matchesPattern(pattern, one));
  return fits(id) || (fits(name) && resolvesTo(x, name, id));
}

function resolvesTo(x: HostExchange, name: string, id: string): boolean {
  const { gen, frontend } = x["~"];
  try {
    return gen.resolver
      .resolve(frontend, name, x.stream)
      .candidates.some((candidate) => candidate.id === id);
  } catch {
    return false;
  }
}
