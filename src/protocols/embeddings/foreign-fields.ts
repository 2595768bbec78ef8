import type { EmbeddingRequest } from "../../model/request.ts";
import type { LossReporter } from "../../plugin/protocol.ts";
import { asObject } from "../json-values.ts";

/**
 * Formats with fields that only their own clients send. Google has such fields per text, for
 * example a title. Cohere has them per request.
 */
const FORMATS = ["gemini-embedding", "cohere-embed"];

/**
 * Reports the fields of other formats as dropped.
 *
 * @param own The format that is being encoded.
 */
export function reportForeignFields(
  { ext }: EmbeddingRequest,
  of: LossReporter,
  own?: string,
): void {
  const reported = new Set<string>();
  for (const id of FORMATS)
    if (id !== own)
      for (const one of [ext[id] ?? []].flat())
        for (const field in asObject(one)) if (!reported.has(field)) reported.add(field);
  for (const field of reported) of.reportLoss(field, "dropped");
}
