// One look at a body of this protocol, on both lanes: what it may cost, and what it names.
import { heardIn } from "../../model/transcript-work.ts";
import { isFilePart, type Body } from "../../model/values.ts";
import type { Survey } from "../../plugin/survey.ts";
import { isOn } from "../json.ts";
import { featuresOf, look } from "../look/index.ts";
import { spending } from "../spending.ts";

export function survey(body: Body): Survey {
  const { file, ...fields } = body;
  const named = look(fields);
  const { n: _, ...spent } = spending(fields, named, { output: undefined });
  return {
    features: [...(isOn(body["stream"]) ? (["stream"] as const) : []), ...featuresOf(named)],
    named,
    ...spent,
    ...(isFilePart(file) && heardIn(file.data, wordsIn(fields))),
  };
}

/** Whatever a model may be made to read beside the sound. */
const wordsIn = (fields: object): string =>
  Object.values(fields)
    .map((value) => (typeof value === "string" ? value : JSON.stringify(value)))
    .join(" ");
