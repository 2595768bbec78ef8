// One look at a body of this protocol, on both lanes: what it may cost, and what it names.
import { spokenIn } from "../../model/speech-work.ts";
import type { Body } from "../../model/values.ts";
import type { Survey } from "../../plugin/protocol.ts";
import { text } from "../json.ts";
import { featuresOf, look } from "../look/index.ts";
import { spending } from "../spending.ts";

export function survey(body: Body): Survey {
  const { input, ...fields } = body;
  const named = look(fields);
  const { n: _, ...spent } = spending(fields, named, { output: undefined });
  return {
    features: [...featuresOf(named)],
    named,
    ...spent,
    ...spokenIn(text(input) ?? "", JSON.stringify(fields)),
  };
}
