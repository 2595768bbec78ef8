// A client's words in the common vocabulary. In a form all is text.
import { fail } from "../../../model/error.ts";
import type { TranscriptRequest } from "../../../model/sound.ts";
import { isFilePart, type Body, type Json } from "../../../model/values.ts";
import { isOn, list, number, present, text } from "../../json.ts";
import { unknownIn } from "../../strangers.ts";
import { FORMAT, ID, knows, OWN, TIMES } from "../words.ts";

export function request(body: Body): TranscriptRequest {
  const { file } = body;
  const own: Record<string, Json> = {};
  for (const field of OWN) {
    const said = body[field];
    if (said !== undefined && said !== null) own[field] = said as Json;
  }
  return present({
    kind: "transcript" as const,
    model: text(body["model"]) ?? "",
    stream: isOn(body["stream"]),
    file: isFilePart(file)
      ? file
      : fail("invalid", "file must be a file of the form.", {
          param: "file",
          code: "invalid_request",
        }),
    language: text(body["language"]),
    prompt: text(body["prompt"]),
    temperature: numberIn(body["temperature"], "temperature"),
    format: text(body[FORMAT]),
    granularities: timesIn(body[TIMES]),
    rest: unknownIn(body, (name) => body[name] === null || knows(name)),
    ext: Object.keys(own).length > 0 ? { [ID]: own } : {},
  });
}

export const timesIn = (said: unknown): readonly string[] =>
  (Array.isArray(said) ? list(said) : [said]).flatMap((one) => text(one) ?? []);

function numberIn(said: unknown, field: string): number | undefined {
  if (said === undefined || said === null || said === "") return undefined;
  const value = typeof said === "string" ? Number(said) : number(said);
  return value !== undefined && Number.isFinite(value)
    ? value
    : fail("invalid", `${field} must be a number.`, { param: field, code: "invalid_request" });
}
