import { isPromise } from "../../lib/is-promise.ts";
import type { Body, Opt } from "../../model/values.ts";
import { rejectRetention } from "../privacy/zero-retention.ts";
import type { HostExchange } from "../exchange/exchange.ts";
import { runSequentially } from "../hooks/hook-runner.ts";
import { bytesOf, analyzeBody, withEdits } from "./receive.ts";

/**
 * Runs the edit hooks once, before any other code reads the request. The hooks return fields that
 * replace the client's own.
 */
export function edit(x: HostExchange): void | Promise<void> {
  const hooks = x.state.frontend.hooks.lists.edit;
  if (hooks.length === 0 || x.actionType === "relay") return;
  return runSequentially(hooks, x.model, (hook) => {
    const fields = hook.run(x);
    const apply = (got: Opt<Body>) => {
      if (got) applyEdits(x, got);
    };
    return isPromise(fields) ? fields.then(apply) : apply(fields);
  });
}

/**
 * Applies fields like a frontend's own edits: request analysis, decoding, and the outgoing request
 * see them, in both modes.
 */
function applyEdits(x: HostExchange, fields: Body): void {
  const { frontend } = x.state;
  const { received } = x.state.body;
  const edits = { ...received!.edits, ...fields };
  const body = withEdits(received!.body, fields);
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
