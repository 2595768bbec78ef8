import { isPromise } from "../../lib/is-promise.ts";
import type { Body } from "../../model/values.ts";
import { rejectRetention } from "../privacy/zero-retention.ts";
import type { HostExchange } from "../exchange/exchange.ts";
import { bytesOf, analyzeBody } from "./receive.ts";

/**
 * Runs the edit hooks once, before anything else reads the request. They return fields that replace
 * the client's own.
 */
export function edit(x: HostExchange): Promise<void> | undefined {
  const hooks = x.state.frontend.hookChain.edit;
  return hooks.length > 0 && x.actionType !== "relay" ? runEditHooks(x) : undefined;
}

async function runEditHooks(x: HostExchange): Promise<void> {
  for (const hook of x.state.frontend.hookChain.edit) {
    if (!hook.appliesTo(x.model, undefined)) continue;
    const said = hook.run(x);
    const fields = isPromise(said) ? await said : said;
    if (fields) applyEdits(x, fields);
  }
}

/**
 * Applies fields like a frontend's own edits: request analysis, decoding, and the outgoing request
 * see them, in both modes.
 */
function applyEdits(x: HostExchange, fields: Body): void {
  const { frontend } = x.state;
  const { received } = x.state.body;
  const edits = { ...received!.edits, ...fields };
  const body = { ...received!.body, ...fields };
  const survey = analyzeBody(frontend.server, body);
  if (x.privacy !== "off") rejectRetention(x, survey);
  x.state.body.received = {
    ...received!,
    edits,
    body,
    facts: survey,
    inputBytes: received!.raw.length + bytesOf(edits),
  };
  x.invalidateDecodedBody();
}
