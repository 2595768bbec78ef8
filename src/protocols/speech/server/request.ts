// Decodes a client's request into the common form.
import type { SpeechRequest } from "../../../model/operations/audio-requests.ts";
import type { Body } from "../../../model/values.ts";
import { asNumber, asObject, omitUndefined, asText } from "../../json-values.ts";
import { unknownTopLevelFields } from "../../unknown-fields.ts";
import { ID, knowsField, STREAM_FORMAT } from "../constants.ts";

export function decodeRequest(body: Body): SpeechRequest {
  const events = asText(body[STREAM_FORMAT]);
  return omitUndefined({
    operation: "speech" as const,
    model: asText(body["model"]) ?? "",
    // Clients read audio as it arrives, whether or not they request a stream.
    stream: true,
    input: asText(body["input"]) ?? "",
    voice: asText(body["voice"]) ?? asObject(body["voice"]),
    instructions: asText(body["instructions"]),
    format: asText(body["response_format"]),
    speed: asNumber(body["speed"]),
    rest: unknownTopLevelFields(body, (name) => body[name] === null || knowsField(name)),
    ext: events === undefined ? {} : { [ID]: { [STREAM_FORMAT]: events } },
  });
}
