// Checks the outgoing request for state, models, accounts, and privacy. The checks run on the body
// that is sent, in both modes, immediately before it is sent. The tables are in
// protocols/references. This file defines the action for each reference that they find.
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
import { matchesPattern } from "../../catalog/model-names.ts";
import { effectivePolicyOf } from "../privacy/candidate-policy.ts";
import { verifyPolicy, rejectUnreviewedFields } from "../privacy/zero-retention.ts";

/**
 * Runs before a request is encoded for a provider, so that the result does not depend on fields
 * that the provider's protocol lacks.
 */
export function checkBeforeEncoding(call: HostCall): void {
  const x = call.exchange;
  const { facts } = x.state.body.received!;
  const native = call.protocol === null;
  const { references = [] } = facts;
  if (call.mode === "translated" && references.length > 0) {
    checkStateReferences(call, references);
    if (call.protocol !== x.protocol) rejectProviderOnlyTools(references);
  }
  // Only the plugin sees what a native endpoint sends, so the request that the plugin receives must
  // already be allowed.
  if (native && x.privacy !== "off")
    rejectUnreviewedFields(call, x.body, x.state.frontend.protocol);
}

/**
 * Rejects hosted tools that have a separate field, such as `mcp_servers`. The error names that
 * field.
 */
function rejectProviderOnlyTools(named: References): void {
  for (const { type, path } of named)
    if (type === "hosted" && (path === "mcp_servers" || path === "mcpServers"))
      fail(
        "unsupported",
        `${path} can be used only with the provider that hosts or defines them.`,
        {
          param: path,
          code: "unsupported_tool",
        },
      );
}

/** Checks the final request. The request is not changed after these checks. */
export function checkBeforeSending(call: HostCall, out: OutgoingRequest): void {
  const named = out.references();
  if (named.length > 0) {
    for (const one of named)
      if (one.type === "account")
        fail(
          "unsupported",
          `${one.path} names a provider account, which only the gateway may choose. Omit it.`,
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

/**
 * Throws if the request refers to stored state that it may not use. A client that speaks another
 * protocol than the provider cannot refer to that provider's state.
 */
function checkStateReferences(call: HostCall, named: References): void {
  const x = call.exchange;
  const isSameProtocol = call.protocol === x.protocol;
  const isPinned = x.state.body.received!.pinnedTarget !== undefined;
  const statefulReference = findBlockedReference(named, {
    stateMode: isSameProtocol ? call.stateMode : "reject",
    isBoundToKey: isPinned,
  });
  if (statefulReference) rejectReference(statefulReference);
}

/**
 * Checks the other models that a body names. The key must be allowed to use each of these models,
 * and privacy applies to each model.
 */
function checkReferencedModels(call: HostCall, named: References): void {
  const x = call.exchange;
  for (const info of findReferencedModels(call, named)) {
    const id = `${call.provider}/${info.model}`;
    // The check of the model's name already covered a preset that is part of the name.
    if (!call.model.endsWith(info.model) && !isModelAllowed(x, id, info.model))
      fail(
        "forbidden",
        `This key may not use ${id}, which this request names in addition to its model.`,
        {
          param: named.find((one) => one.type === "model" && one.model === info.model)!.path,
          code: "model_not_allowed",
        },
      );
    if (x.privacy === "off") continue;
    if (
      !satisfies(
        x.privacy,
        effectivePolicyOf(call.candidate.mounted, info, wallClock(), [
          ...referencedFeatures(named),
        ]),
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

/**
 * Returns the models that a body names in addition to the called model, as this provider offers
 * them. Any of these models may respond and be billed.
 */
export const findReferencedModels = (call: HostCall, named: References): readonly ModelInfo[] =>
  referencedModels(named).map(
    (model) => call.exchange.state.gen.catalog.find(call.provider, model).info,
  );

/** Whether the key may use the model, by its ID or by a name of the gateway that resolves to it. */
function isModelAllowed(x: HostExchange, id: string, name: string): boolean {
  const allowed = x.identity?.models;
  if (!allowed) return true;
  const fits = (one: string) => allowed.some((pattern) => matchesPattern(pattern, one));
  return fits(id) || (fits(name) && resolvesTo(x, name, id));
}

function resolvesTo(x: HostExchange, name: string, id: string): boolean {
  const { gen, frontend } = x.state;
  try {
    return gen.resolver
      .resolve(frontend, name, x.stream)
      .candidates.some((candidate) => candidate.id === id);
  } catch {
    return false;
  }
}
