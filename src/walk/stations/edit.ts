import { isPromise } from "../../lib/promise.ts";
import type { Body } from "../../model/values.ts";
import { keepsNothing } from "../candidates/privacy.ts";
import type { HostExchange } from "../exchange.ts";
import { bytesOf, surveyed } from "./receive.ts";

/** Fields in place of the client's own, as the edit hooks would have them: once, before anything else reads the request. */
export function edit(x: HostExchange): Promise<void> | undefined {
  const hooks = x["~"].frontend.chain.edit;
  return hooks.length > 0 && x.op !== "relay" ? edited(x) : undefined;
}

async function edited(x: HostExchange): Promise<void> {
  for (const hook of x["~"].frontend.chain.edit) {
    if (!hook.applies(x.model, undefined)) continue;
    const said = hook.run(x);
    const fields = isPromise(said) ? await said : said;
    if (fields) put(x, fields);
  }
}

/** As a frontend's own edits are: survey, decoding and what is sent see these, on both lanes. */
function put(x: HostExchange, fields: Body): void {
  const { frontend, received: was } = x["~"];
  const edits = { ...was!.edits, ...fields };
  const body = { ...was!.body, ...fields };
  const survey = surveyed(frontend.server, body);
  if (x.privacy !== "off") keepsNothing(x, survey);
  x["~"].received = { ...was!, edits, body, survey, bytes: was!.raw.length + bytesOf(edits) };
  x.readAnew();
}
