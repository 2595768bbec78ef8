// Settings of a session, in the form of the released API and of its beta.
import { fail } from "../../model/error.ts";
import type { Privacy } from "../../model/facts.ts";
import type { JsonObject, Opt } from "../../model/values.ts";
import { asCount, asList, asObject, asText } from "../json-values.ts";
import { bytesPerSecond, DEFAULT_BYTES_A_SECOND } from "./audio-format.ts";

/** Settings on which the bill depends, as the provider confirmed them. */
export interface SessionSettings {
  /** Bytes per second of the audio that the client sends and receives. */
  readonly inputRate: number;
  readonly outputRate: number;
  /** Model that transcribes the client's audio. Undefined: no transcription. */
  readonly transcription: string | undefined;
  /** Maximum output tokens of one response. Undefined: the model's maximum. */
  readonly maxOutput: number | undefined;
  readonly instructions: string;
}

export const DEFAULT_SETTINGS: SessionSettings = {
  inputRate: DEFAULT_BYTES_A_SECOND,
  outputRate: DEFAULT_BYTES_A_SECOND,
  transcription: undefined,
  maxOutput: undefined,
  instructions: "",
};

/** Reads a session object of the provider. Fields that it lacks keep their values. */
export function readSettings(session: JsonObject, before: SessionSettings): SessionSettings {
  const input = asObject(asObject(session["audio"])?.["input"]);
  const output = asObject(asObject(session["audio"])?.["output"]);
  const transcription = input?.["transcription"] ?? session["input_audio_transcription"];
  return {
    inputRate:
      bytesPerSecond(input?.["format"] ?? session["input_audio_format"]) ?? before.inputRate,
    outputRate:
      bytesPerSecond(output?.["format"] ?? session["output_audio_format"]) ?? before.outputRate,
    transcription:
      transcription === undefined
        ? before.transcription
        : asText(asObject(transcription)?.["model"]),
    maxOutput: readMaxOutput(session, before.maxOutput),
    instructions: asText(session["instructions"]) ?? before.instructions,
  };
}

/** Returns the maximum output of a session or a response. `inf` means the model's maximum. */
export function readMaxOutput(
  of: JsonObject | undefined,
  before: number | undefined,
): number | undefined {
  const max = of?.["max_output_tokens"] ?? of?.["max_response_output_tokens"];
  return max === undefined ? before : asCount(max);
}

/**
 * Returns the transcription models that a client's session names. A session with both forms may
 * name two, and the provider applies the form that it knows.
 */
export function namedTranscriptions(session: JsonObject): readonly string[] {
  const input = asObject(asObject(session["audio"])?.["input"]);
  return [input?.["transcription"], session["input_audio_transcription"]].flatMap(
    (settings) => asText(asObject(settings)?.["model"]) ?? [],
  );
}

/** Number of bytes of the text that a session adds to each response: instructions and tools. */
export function textBytes(settings: JsonObject): number {
  const tools = settings["tools"];
  return (
    Buffer.byteLength(asText(settings["instructions"]) ?? "") +
    (tools === undefined ? 0 : Buffer.byteLength(JSON.stringify(tools)))
  );
}

/**
 * Rejects settings that make the provider, or a server that it calls, store content of a private
 * request.
 */
export function checkPrivacy(settings: JsonObject, privacy: Opt<Privacy>): void {
  if (privacy === undefined || privacy === "off") return;
  const stores = STORING_FIELDS.find((field) => (settings[field] ?? null) !== null);
  if (stores !== undefined) failPrivate(stores);
  for (const tool of asList(settings["tools"]))
    if (asText(asObject(tool)?.["type"]) !== "function") failPrivate("tools");
}

const STORING_FIELDS = ["tracing", "prompt"];

const failPrivate = (field: string): never =>
  fail("privacy", `"${field}" is not allowed with Service-ZDR, because its content is stored.`, {
    code: "zdr_field",
    param: `session.${field}`,
  });
