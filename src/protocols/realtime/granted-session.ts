// The session that a client secret grants. The client may change its settings, except those that
// determine the bill or allow the provider to call other servers.
import { fail } from "../../model/error.ts";
import { setOwnProperty } from "../../lib/set-own-property.ts";
import type { Json, JsonObject, Opt } from "../../model/values.ts";
import { asNumber, asObject, asObjects, isObject } from "../json-values.ts";
import { namedTranscriptions } from "./session-settings.ts";

/**
 * Throws the fault for the client if settings of a session or of a response exceed the granted
 * session.
 */
export function checkGranted(settings: JsonObject, granted: JsonObject): void {
  const type = settings["type"];
  if (type !== undefined && type !== granted["type"]) reject("type");
  // Without a value, the provider applies its own maximum.
  if (maxOutput(granted) !== undefined && MAX_OUTPUT_FIELDS.some((name) => settings[name] === null))
    reject("max_output_tokens");
  checkReported(settings, granted);
  if (settings["prompt"] && !isSameJson(settings["prompt"], granted["prompt"])) reject("prompt");
  for (const tool of serverTools(settings))
    if (!serverTools(granted).some((one) => isSameJson(one, tool))) reject("tools");
}

/**
 * Like `checkGranted`, for settings that the provider reports. It adds defaults, and removes the
 * credentials of tools.
 */
export function checkReported(settings: JsonObject, granted: JsonObject): void {
  const max = maxOutput(granted);
  if (max !== undefined)
    for (const name of MAX_OUTPUT_FIELDS) {
      const wanted = settings[name] ?? max;
      if ((asNumber(wanted) ?? Infinity) > max) reject("max_output_tokens");
    }
  const transcriptions = namedTranscriptions(granted);
  if (
    transcriptions.length > 0 &&
    namedTranscriptions(settings).some((model) => !transcriptions.includes(model))
  )
    reject("audio.input.transcription.model");
  const prompt = asObject(settings["prompt"]);
  if (prompt && prompt["id"] !== asObject(granted["prompt"])?.["id"]) reject("prompt");
  for (const tool of serverTools(settings))
    if (!serverTools(granted).some((one) => isSameServer(tool, one))) reject("tools");
}

/** Names of the maximum output in the released API and in its beta. */
const MAX_OUTPUT_FIELDS = ["max_output_tokens", "max_response_output_tokens"];

const maxOutput = (granted: JsonObject): number | undefined =>
  asNumber(granted["max_output_tokens"] ?? granted["max_response_output_tokens"]);

/** Returns the client's settings, added to those of the granted session. */
export function mergeSettings(granted: JsonObject, settings: JsonObject): JsonObject {
  const merged: Record<string, Opt<Json>> = { ...granted };
  for (const [name, value] of Object.entries(settings)) {
    const old = granted[name];
    setOwnProperty(
      merged,
      name,
      isObject(old) && isObject(value) ? mergeSettings(old, value) : value,
    );
  }
  return merged;
}

/** Tools that the provider runs, or calls on other servers. */
const serverTools = (settings: JsonObject): readonly JsonObject[] =>
  asObjects(settings["tools"]).filter((tool) => tool["type"] !== "function");

const SERVER_FIELDS = ["type", "server_label", "server_url", "connector_id", "tunnel_id"];

/** Whether a tool that the provider reports calls the server of a granted tool. */
const isSameServer = (tool: JsonObject, granted: JsonObject): boolean =>
  SERVER_FIELDS.every((name) => (tool[name] ?? null) === null || tool[name] === granted[name]);

/** Whether two JSON values are the same. The order of members does not matter. */
function isSameJson(a: Opt<Json>, b: Opt<Json>): boolean {
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return a === b;
  const names = Object.keys(a);
  return (
    Array.isArray(a) === Array.isArray(b) &&
    names.length === Object.keys(b).length &&
    names.every(
      (name) => Object.hasOwn(b, name) && isSameJson(memberOf(a, name), memberOf(b, name)),
    )
  );
}

const memberOf = (of: object, name: string): Opt<Json> => (of as JsonObject)[name];

const reject = (setting: string): never =>
  fail(
    "forbidden",
    `The client secret does not allow this value of "${setting}". Create a client secret with it.`,
    { code: "session_fixed", param: `session.${setting}` },
  );
