import type { EmbeddingRequest } from "../../model/request.ts";
import type { LossReporter } from "../../plugin/protocol.ts";
import { list, object } from "../json.ts";

/** What Google's clients alone say of a text, such as its title. */
export function foreign({ ext }: EmbeddingRequest, of: LossReporter): void {
  const said = new Set<string>();
  for (const one of list(ext["gemini-embedding"]))
    for (const field in object(one)) if (!said.has(field)) said.add(field);
  for (const field of said) of.lose(field, "dropped");
}
