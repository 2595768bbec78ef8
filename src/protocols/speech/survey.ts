// One look at a body of this protocol, on both lanes: what it may cost, and what it names.
import { spokenIn } from "../../model/speech-work.ts";
import type { Body } from "../../model/values.ts";
import type { Survey } from "../../plugin/survey.ts";
import { text } from "../json.ts";
import { featuresOf, look } from "../look/index.ts";
import { spending } from "../spending.ts";
import { STREAM_FORMAT } from "./words.ts";

export function survey(body: Body): Survey {
  const { input, ...fields } = body;
  const named = look(fields);
  const { n: _, ...spent } = spending(fields, named, { output: undefined });
  return {
    features: [...featuresOf(named)],
    named,
    ...spent,
    ...spokenIn(text(input) ?? "", wordsIn(fields)),
  };
}

/** Fields that no host speaks. */
const SILENT: ReadonlySet<string> = new Set([
  "model",
  "voice",
  "response_format",
  "speed",
  "stream",
  STREAM_FORMAT,
]);

/** Whatever a host may speak, or bill, beside the input. */
const wordsIn = (fields: Body): string =>
  Object.entries(fields)
    .filter(([field]) => !SILENT.has(field))
    .map(([, value]) => (typeof value === "string" ? value : JSON.stringify(value)))
    .join("");
