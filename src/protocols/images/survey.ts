// One look at a body of this protocol, on both lanes: what it may cost, and what a model must be able to do.
import type { Feature } from "../../model/facts.ts";
import { isFilePart, type Body } from "../../model/values.ts";
import type { Survey } from "../../plugin/protocol.ts";
import { isObject, isOn, number, text } from "../json.ts";
import { featuresOf, look } from "../look/index.ts";
import { spending } from "../spending.ts";
import { PICTURES } from "./words.ts";

export function survey(body: Body): Survey {
  const named = look(body);
  const spent = spending(body, named, { output: undefined });
  const n = spent.n ?? 1;
  const features: Feature[] = [];
  if (isOn(body["stream"])) features.push("stream");
  if (n > 1) features.push("n");
  return {
    features: [...features, ...featuresOf(named)],
    ...(named.length > 0 && { named }),
    ...spent,
    media: broughtIn(body),
    n,
    size: sizeIn(body),
    quality: text(body["quality"]),
    // An address is made of bytes, or bytes are fetched, by the gateway: not while they pass.
    translate: body["response_format"] === "url",
  };
}

/** Pictures that come along, by whichever of the forms in use. */
function broughtIn(body: Body): Survey["media"] {
  const all = PICTURES.flatMap((field) => [body[field]].flat() as readonly unknown[]).filter(
    (one) => one !== undefined && one !== null,
  );
  if (all.length === 0) return undefined;
  return { count: all.length, bytes: all.reduce<number>((sum, one) => sum + bytesOf(one), 0) };
}

function bytesOf(said: unknown): number {
  if (isFilePart(said)) return said.data.length;
  if (typeof said === "string") return said.length;
  let bytes = 0;
  if (isObject(said)) for (const member in said) bytes += text(said[member])?.length ?? 0;
  return bytes;
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
