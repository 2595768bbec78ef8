// One call of InvokeModel by a kind of work that has a wire of its own: a body there, a body back.
import { fail, type Call, type JsonObject } from "tollgate/plugin";
import { parsed } from "./json.ts";
import { placed } from "./placed.ts";
import { faultOf } from "./refusal.ts";

export async function invoked(
  call: Call,
  body: JsonObject,
  signal: AbortSignal = call.signal,
): Promise<JsonObject> {
  const answer = await call.fetch(placed(call.model, "invoke").slice(1), {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify(body),
    signal,
  });
  const said = Buffer.from(await answer.arrayBuffer());
  if (answer.ok) return parsed(said) ?? {};
  const { kind, message, ...more } = faultOf(
    answer.status,
    Object.fromEntries(answer.headers),
    said,
  );
  return fail(kind, message, more);
}
