// Background mode of OpenAI's responses: a request is accepted immediately, and its response is
// polled under its ID.
import {
  fail,
  type BackgroundStatus,
  type EndpointBackground,
  type JsonObject,
} from "../../../plugin/index.ts";
import { deleteObject, fetchObject, requestCancellation } from "../../batches/batch-response.ts";
import { asNumber, asObject, asText, parseObject } from "../../json-values.ts";

const STATES: { readonly [status: string]: BackgroundStatus["state"] } = {
  queued: "queued",
  in_progress: "running",
  completed: "completed",
  incomplete: "completed",
  failed: "failed",
  cancelled: "canceled",
};

/**
 * Returns the background mode of an endpoint with OpenAI's responses.
 * @param path Path of all responses, relative to the base URL.
 */
export function openAiBackground(path = "responses"): EndpointBackground {
  const urlOf = (id: string) => `${path}/${encodeURIComponent(id)}`;
  const poll: EndpointBackground["poll"] = async (reference, client) =>
    readStatus(await fetchObject(client, urlOf(reference)));
  return {
    async create({ path: to, headers, body }, client) {
      const created = await fetchObject(client, to, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body: encodeBody(body),
      });
      return (
        asText(created["id"]) ||
        fail("upstream", "The provider returned a response without an ID.", { code: "bad_answer" })
      );
    },
    poll,
    cancel: (reference, client) =>
      requestCancellation(client, `${urlOf(reference)}/cancel`, async () => {
        const { state } = await poll(reference, client);
        return state !== "queued" && state !== "running";
      }),
    delete: (reference, client) => deleteObject(client, urlOf(reference)),
  };
}

function encodeBody(text: string): string {
  const { stream: _, stream_options: __, ...body } = parseObject(text) ?? {};
  return JSON.stringify({ ...body, background: true, store: true });
}

function readStatus(response: JsonObject): BackgroundStatus {
  const status = asText(response["status"]) ?? "";
  const state = Object.hasOwn(STATES, status) ? STATES[status] : undefined;
  if (state === undefined)
    return fail("upstream", "The provider returned a response with an unknown status.", {
      code: "bad_answer",
    });
  if (state === "queued" || state === "running") return { state };
  const hasUsage = asNumber(asObject(response["usage"])?.["input_tokens"]) !== undefined;
  if (state !== "failed") return { state, response, hasUsage };
  const message = asText(asObject(response["error"])?.["message"]);
  return { state, response, hasUsage, message: message ?? "The provider could not generate it." };
}
