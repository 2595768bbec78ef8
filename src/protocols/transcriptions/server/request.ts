// Decodes a client's request into the common form. All form fields are text.
import { fail } from "../../../model/error.ts";
import type { TranscriptRequest } from "../../../model/operations/audio-requests.ts";
import { isFilePart, type Body, type Json } from "../../../model/values.ts";
import { isTruthyFlag, asList, asNumber, omitUndefined, asText } from "../../json-values.ts";
import { unknownTopLevelFields } from "../../unknown-fields.ts";
import {
  RESPONSE_FORMAT,
  ID,
  knowsField,
  PROTOCOL_FIELDS,
  TIMESTAMP_GRANULARITIES,
} from "../constants.ts";

export function decodeRequest(body: Body): TranscriptRequest {
  const { file } = body;
  const own: Record<string, Json> = {};
  for (const field of PROTOCOL_FIELDS) {
    const value = body[field];
    if (value !== undefined && value !== null) own[field] = value as Json;
  }
  return omitUndefined({
    operation: "transcript" as const,
    model: asText(body["model"]) ?? "",
    stream: isTruthyFlag(body["stream"]),
    file: isFilePart(file)
      ? file
      : fail("invalid", "file must be a file in the form.", {
          param: "file",
          code: "invalid_request",
        }),
    language: asText(body["language"]),
    prompt: asText(body["prompt"]),
    temperature: numberIn(body["temperature"], "temperature"),
    format: asText(body[RESPONSE_FORMAT]),
    granularities: timesIn(body[TIMESTAMP_GRANULARITIES]),
    rest: unknownTopLevelFields(body, (name) => body[name] === null || knowsField(name)),
    ext: Object.keys(own).length > 0 ? { [ID]: own } : {},
  });
}

export const timesIn = (value: unknown): readonly string[] =>
  (Array.isArray(value) ? asList(value) : [value]).flatMap((one) => asText(one) ?? []);

function numberIn(rawValue: unknown, field: string): number | undefined {
  if (rawValue === undefined || rawValue === null || rawValue === "") return undefined;
  const value = typeof rawValue === "string" ? Number(rawValue) : asNumber(rawValue);
  return value !== undefined && Number.isFinite(value)
    ? value
    : fail("invalid", `${field} must be a number.`, { param: field, code: "invalid_request" });
}
