// What both halves read in a request for vectors: a list of requests with one content each, or one such request alone.
import type { Vector } from "../../model/request.ts";
import type { Body, JsonObject } from "../../model/values.ts";
import { checked } from "../embeddings/index.ts";
import { number, objects } from "../json.ts";
import { vectorsInOneSpelling } from "./one-spelling.ts";

/** What a client said of each text that only this wire knows stands in `ext` under this name. */
export const VECTORS = "gemini-embedding";

/** One for each vector. */
export function asksIn(body: Body): readonly JsonObject[] {
  const fields = vectorsInOneSpelling(body) as JsonObject;
  return fields["requests"] === undefined ? [fields] : objects(fields["requests"]);
}

/** The vectors of an answer, all of them and each as wide as it was asked for. Throws what makes it no answer. */
export function owed(body: Body, vectors: readonly (Vector | undefined)[]): readonly Vector[] {
  const widths = asksIn(body).map((one) => number(one["outputDimensionality"]));
  const wish = { count: widths.length, dtype: "float", base64: false } as const;
  if (vectors.length !== widths.length || widths.every((width) => width === widths[0]))
    return checked(vectors, { ...wish, width: widths[0] });
  return vectors.flatMap((one, i) => checked([one], { ...wish, count: 1, width: widths[i] }));
}
