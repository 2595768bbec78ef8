import { fail } from "../../model/error.ts";
import type { EmbeddingRequest } from "../../model/request.ts";

/** The inputs of a request to a model that reads text: ids are another tokenizer's, and are not guessed at. */
export const requireTextInputs = (
  { inputs }: EmbeddingRequest,
  { model }: { readonly model: string },
): readonly string[] =>
  inputs.map((input) =>
    typeof input === "string"
      ? input
      : fail("unsupported", `${model} reads text, not ids of tokens.`, {
          param: "input",
          code: "unsupported_input",
        }),
  );
