// Calls InvokeModel once, for operations with their own API format: sends a body and returns the
// body of the response.
import { fail, type Call, type JsonObject } from "tollgate/plugin";
import { parsed } from "./json.ts";
import { parseAwsError } from "./errors.ts";

export async function invokeModel(
  call: Call,
  body: JsonObject,
  signal: AbortSignal = call.signal,
): Promise<JsonObject> {
  const answer = await call.fetch(modelPath(call.model, "invoke").slice(1), {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify(body),
    signal,
  });
  const responseBody = Buffer.from(await answer.arrayBuffer());
  if (answer.ok) return parsed(responseBody) ?? {};
  const { kind, message, ...more } = parseAwsError(
    answer.status,
    Object.fromEntries(answer.headers),
    responseBody,
  );
  return fail(kind, message, more);
}

// Builds the URL path of a model. The name is one encoded segment, because ARNs contain slashes and
// colons.

export function modelPath(model: string, verb: string): string {
  if (model === "" || model === "." || model === "..")
    fail("not_found", `Model ${model} not found.`, { param: "model", code: "model_not_found" });
  return `/model/${encodeURIComponent(model)}/${verb}`;
}
