// One look at a body of this protocol, on both lanes: what it may cost, and what a model must be able to do.
import type { Body } from "../../model/values.ts";
import type { Survey } from "../../plugin/survey.ts";
import { isObject, list } from "../json.ts";
import { featuresOf, look } from "../look/index.ts";

export function survey(body: Body): Survey {
  const named = look(body);
  const pictures = list(body["input"]).filter(
    (one) => isObject(one) && one["type"] === "image_url",
  );
  return {
    features: [...featuresOf(named), ...(pictures.length > 0 ? (["vision"] as const) : [])],
    named,
    counts: { requests: 1 },
    ...(pictures.length > 0 && {
      media: { count: pictures.length, bytes: JSON.stringify(pictures).length },
    }),
  };
}
