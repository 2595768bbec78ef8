import { fail } from "../../model/error.ts";
import type { EmbeddingRequest } from "../../model/request.ts";

/**
 * Returns the inputs of a request to a model that reads only text. Throws if an input consists of
 * token IDs. They belong to another tokenizer and cannot be converted to text.
 */
export const requireTextInputs = (
  { inputs }: EmbeddingRequest,
  { model }: { readonly model: string },
): readonly string[] =>
  inputs.map((input) =>
    typeof input === "string"
      ? input
      : fail("unsupported", `${model} supports text, not token IDs.`, {
          param: "input",
          code: "unsupported_input",
        }),
  );
