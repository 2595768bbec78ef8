// How likely the model found its tokens, in the form that clients of chat completions and responses read.
import type { Json } from "../../../model/values.ts";
import { list, object, text } from "../../json.ts";

/** One entry a token; nothing when none were told. */
export function likelihoods(raw: unknown): readonly Json[] | undefined {
  const result = object(raw);
  const chosen = list(result?.["chosenCandidates"]);
  if (chosen.length === 0) return undefined;
  const top = list(result!["topCandidates"]);
  return chosen.map((one, i) => ({
    ...token(one),
    top_logprobs: list(object(top[i])?.["candidates"]).map(token),
  }));
}

function token(raw: Json) {
  const said = object(raw);
  const word = text(said?.["token"]) ?? "";
  const logprob = said?.["logProbability"];
  return {
    token: word,
    // A certain token has zero, which is left out.
    logprob: typeof logprob === "number" ? logprob : 0,
    bytes: [...Buffer.from(word)],
  };
}
