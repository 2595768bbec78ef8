// Decodes log probabilities into the form that clients of chat completions and responses read.
import type { Json } from "../../../model/values.ts";
import { asList, asObject, asText } from "../../json-values.ts";

/** Returns one entry per token, or undefined if none were reported. */
export function parseLogprobs(raw: unknown): readonly Json[] | undefined {
  const result = asObject(raw);
  const chosen = asList(result?.["chosenCandidates"]);
  if (chosen.length === 0) return undefined;
  const top = asList(result!["topCandidates"]);
  return chosen.map((one, i) => ({
    ...token(one),
    top_logprobs: asList(asObject(top[i])?.["candidates"]).map(token),
  }));
}

function token(raw: Json) {
  const entry = asObject(raw);
  const word = asText(entry?.["token"]) ?? "";
  const logprob = entry?.["logProbability"];
  return {
    token: word,
    // The log probability of a certain token is 0, which this protocol omits.
    logprob: typeof logprob === "number" ? logprob : 0,
    bytes: [...Buffer.from(word)],
  };
}
