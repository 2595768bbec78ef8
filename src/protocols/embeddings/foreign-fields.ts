import type { EmbeddingRequest } from "../../model/request.ts";
import type { LossReporter } from "../../plugin/protocol.ts";
import { asObject } from "../json-values.ts";

/** Fields of formats that only their own clients send, such as the title of a text: Google's for each text, Cohere's for all. */
const FORMATS = ["gemini-embedding", "cohere-embed"];

/** Reports the fields of other formats as lost. `own`: the format that is written. */
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
