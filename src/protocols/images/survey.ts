// One look at a body of this protocol, on both lanes: what it may cost, and what a model must be able to do.
import type { Feature } from "../../model/facts.ts";
import type { Body } from "../../model/values.ts";
import type { Survey } from "../../plugin/protocol.ts";
import { number, text } from "../json.ts";
import { featuresOf, look } from "../look/index.ts";
import { spending } from "../spending.ts";

export function survey(body: Body): Survey {
  const named = look(body);
  const spent = spending(body, named, { output: undefined });
  const n = spent.n ?? 1;
  const features: Feature[] = [];
  if (body["stream"] === true) features.push("stream");
  if (n > 1) features.push("n");
  return {
    features: [...features, ...featuresOf(named)],
    ...(named.length > 0 && { named }),
    ...spent,
    n,
    size: sizeIn(body),
    quality: text(body["quality"]),
    // An address is made of bytes, or bytes are fetched, by the gateway: not while they pass.
    translate: body["response_format"] === "url",
  };
}

/** A host that reads sides and a host that reads a size may both get both: the larger picture is the one to pay for. */
function sizeIn(body: Body): string | undefined {
  const size = text(body["size"]);
  const [width, height] = [number(body["width"]), number(body["height"])];
  if (width === undefined || height === undefined) return size;
  const sides = `${Math.ceil(width)}x${Math.ceil(height)}`;
  return size === undefined || areaOf(sides) > areaOf(size) ? sides : size;
}

const areaOf = (size: string): number => {
  const [width = 0, height = 0] = size.split("x").map(Number);
  return width * height || 0;
};
