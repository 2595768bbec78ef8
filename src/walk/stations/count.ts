import { inputUpTo } from "../../money/estimate.ts";
import { fail } from "../../model/error.ts";
import { aside } from "./aside.ts";
import { blame } from "../upstream/blame.ts";
import { HostCall, noteSent } from "../call.ts";
import { encode, headOf } from "../upstream/encode.ts";
import type { HostExchange } from "../exchange.ts";
import { send } from "../upstream/send.ts";
import { mayBegin } from "../upstream/permission.ts";
import { promise } from "../candidates/privacy.ts";
import { answerHeaders } from "../answer/answer-headers.ts";
import type { Plan } from "./route.ts";
import { Few, gather } from "../upstream/response.ts";

/**
 * How many tokens a request would be: asked of a provider that can tell, else estimated and said so. It counts like any
 * request, and nothing is billed.
 */
export async function count(x: HostExchange, plan: Plan): Promise<void> {
  const inner = x["~"];
  const server = inner.frontend.server;
  if (!server?.count) return fail("unsupported", `${x.frontend} does not count tokens.`);
  const call = new HostCall(x, plan.candidates[0]!, 1);
  inner.last = call;
  noteSent(call);
  // Only the head of an answer can attest that nothing is kept. A count is not worth asking for that.
  const silent = x.privacy !== "off" && call.policy.attest !== undefined;
  const tokens = await aside(
    call,
    async () => (silent ? undefined : await asked(call)) ?? estimated(call),
  );
  const body = Buffer.from(JSON.stringify(server.count(tokens)));
  const head = headOf(call, {});
  inner.res.writeHead(200, {
    "content-type": "application/json",
    "content-length": String(body.length),
    ...Object.fromEntries(Object.entries(head).filter(([, value]) => value !== undefined)),
    ...Object.fromEntries(answerHeaders(inner, true)),
    ...Object.fromEntries(inner.headers ?? []),
  });
  inner.res.end(body);
}

async function asked(call: HostCall): Promise<number | undefined> {
  const { endpoint, credential } = call.candidate["~"];
  const x = call.exchange;
  if (!endpoint.wire) {
    const native = endpoint.endpoint;
    if (!("run" in native) || !native.count) return undefined;
    promise(call);
    mayBegin(call);
    return native.count((x["~"].rewritten ?? x.request) as never, call, credential.fields);
  }
  const client = endpoint.protocol!.client!;
  const path = endpoint.wire.endpoint.paths;
  const has = path && "count" in path ? path["count"] : client.paths["count"];
  if (!client.count || has === undefined) return undefined;
  promise(call);
  const response = await send(
    call,
    endpoint.wire,
    encode(call, endpoint.protocol!, endpoint.wire.endpoint),
  );
  try {
    return client.count(await gather(response, new Few("countAnswer")));
  } catch (problem) {
    throw blame(problem, "answer", call.provider);
  }
}

function estimated(call: HostCall): number {
  const x = call.exchange;
  x.header("x-tollgate-estimated", "input_tokens");
  return inputUpTo({ bytes: x["~"].received!.bytes, context: call.info.limits?.context });
}
