import { isPromise } from "../../lib/is-promise.ts";
import type { Body } from "../../model/values.ts";
import { rejectRetention } from "../privacy/zero-retention.ts";
import type { HostExchange } from "../exchange/exchange.ts";
import { bytesOf, analyzeBody } from "./receive.ts";

/** Fields in place of the client's own, as the edit hooks would have them: once, before anything else reads the request. */
export function edit(x: HostExchange): Promise<void> | undefined {
  const hooks = x["~"].frontend.hookChain.edit;
  return hooks.length > 0 && x.actionType !== "relay" ? runEditHooks(x) : undefined;
}

async function runEditHooks(x: HostExchange): Promise<void> {
  for (const hook of x["~"].frontend.hookChain.edit) {
    if (!hook.appliesTo(x.model, undefined)) continue;
    const said = hook.run(x);
    const fields = isPromise(said) ? await said : said;
    if (fields) applyEdits(x, fields);
  }
}

/** As a frontend's own edits are: survey, decoding and what is sent see these, on both lanes. */
function applyEdits(x: HostExchange, fields: Body): void {
  const { frontend, receivedBody: received } = x["~"];
  const edits = { ...received!.edits, ...fields };
  const body = { ...received!.body, ...fields };
  const survey = analyzeBody(frontend.server, body);
  if (x.privacy !== "off") rejectRetention(x, survey);
  x["~"].receivedBody = {
    ...received!,
    edits,
    body,
    facts: survey,
    inputBytes: received!.raw.length + bytesOf(edits),
  };
  x.invalidateDecodedBody();
}
