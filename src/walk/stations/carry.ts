import { scan } from "../../lib/json.ts";
import { fail, fault } from "../../model/error.ts";
import { aside } from "./aside.ts";
import { answerHeaders } from "../answer/answer-headers.ts";
import { HeldBytes } from "../answer/held-bytes.ts";
import { HostCall, noteSent } from "../call.ts";
import { encode, headOf } from "../upstream/encode.ts";
import type { HostExchange } from "../exchange.ts";
import { send } from "../upstream/send.ts";
import { promise } from "../candidates/privacy.ts";
import type { Plan } from "./route.ts";
import { gather, type UpstreamResponse } from "../upstream/response.ts";

const GONE = "The client went away.";

/** A by-id operation of a protocol, to the provider that holds the id: the client's method, upstream's words. Verbatim or nothing. */
export async function carry(x: HostExchange, plan: Plan): Promise<void> {
  const candidate = plan.candidates.find(
    (s) => s.lane === "verbatim" && s["~"].provider.state === "relay",
  );
  if (!candidate)
    return fail("not_found", "There is nothing here by that id.", { code: "not_found" });
  const call = new HostCall(x, candidate, 1);
  x["~"].last = call;
  promise(call);
  return aside(call, () => carried(x, call));
}

async function carried(x: HostExchange, call: HostCall): Promise<void> {
  const { endpoint } = call.candidate["~"];
  const inner = x["~"];
  const out = encode(call, endpoint.protocol!, endpoint.wire!.endpoint);
  noteSent(call);
  const response = await send(call, endpoint.wire!, out);
  inner.onGone.push(() => response.abort(fault("canceled", GONE)));
  if (inner.gone) {
    const gone = fault("canceled", GONE);
    response.abort(gone);
    throw gone;
  }
  const mime = inner.gen.mask(String(response.headers["content-type"] ?? "application/json"));
  const head = Object.entries(headOf(call, response.headers)).filter(
    ([, value]) => value !== undefined,
  );
  const headers = {
    "content-type": mime,
    ...Object.fromEntries(head),
    ...Object.fromEntries(answerHeaders(inner, true)),
    ...Object.fromEntries(inner.headers ?? []),
  };
  if (mime.includes("json")) {
    const body = named(await gather(response, new HeldBytes(call)), call);
    inner.res.writeHead(response.status, { ...headers, "content-length": String(body.length) });
    inner.bytesOut += body.length;
    inner.res.end(body);
    return undefined;
  }
  inner.res.writeHead(response.status, headers);
  return stream(x, response);
}

/** A client that reads it again is told the same name as the first time. */
function named(body: Buffer, call: HostCall): Buffer {
  const seen = scan(body);
  const span = seen.flaw ? undefined : seen.spans.get("model");
  if (!span) return body;
  const name = Buffer.from(JSON.stringify(call.id));
  return Buffer.concat([body.subarray(0, span.from), name, body.subarray(span.to)]);
}

function stream(x: HostExchange, response: UpstreamResponse): Promise<void> {
  const inner = x["~"];
  return new Promise<void>((resolve, reject) => {
    response.take({
      data(chunk) {
        inner.bytesOut += chunk.length;
        if (inner.res.write(chunk)) return;
        response.pause();
        inner.res.once("drain", () => response.resume());
      },
      end(problem) {
        if (problem !== undefined) return reject(problem);
        inner.res.end();
        resolve();
      },
    });
  });
}
