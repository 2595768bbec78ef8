// One look at a body of this protocol, on both lanes: what it may cost, and what a model must be able to do.
import { idsIn } from "../../model/embedding-work.ts";
import type { Body } from "../../model/values.ts";
import type { Survey } from "../../plugin/survey.ts";
import { featuresOf, look } from "../look/index.ts";
import { spending } from "../spending.ts";
import { inputsIn } from "./vectors.ts";

export function survey(body: Body): Survey {
  // Ids of tokens name nothing, and there are many.
  const { input, ...fields } = body;
  const named = look(fields);
  const { n: _, ...spent } = spending(fields, named, { output: undefined });
  return {
    features: [...featuresOf(named)],
    named,
    ...spent,
    counts: idsIn(inputsIn(input)),
    media: broughtIn(fields),
  };
}

/** Fields in which some hosts read pictures, sounds, or texts by address: how much there is to read, only the host knows. */
const BROUGHT: ReadonlySet<string> = new Set(
  "image images image_url image_urls video videos audio audios documents document inputs contents content url urls file files".split(
    " ",
  ),
);

function broughtIn(fields: Body): Survey["media"] {
  let count = 0;
  for (const field in fields)
    if (BROUGHT.has(field.toLowerCase()) && fields[field] != null) count++;
  return count > 0 ? { count, bytes: 0 } : undefined;
}
