// The end of a response and its counts in Gemini's form, from the API's documentation.
import { inputTokens, type Finish, type JsonObject, type Usage } from "tollgate/plugin";

const ENDS: { readonly [reason: string]: string } = {
  length: "MAX_TOKENS",
  context: "MAX_TOKENS",
  filtered: "SAFETY",
  refusal: "SAFETY",
  pause: "CONTINUATION",
};

export const endOf = ({ reason }: Pick<Finish, "reason">): string => ENDS[reason] ?? "STOP";

/** Zeros are omitted. */
export function countsOf(u: Usage): JsonObject {
  const prompt = inputTokens(u);
  const thoughts = u.reasoning ?? 0;
  const said = (u.output ?? 0) - thoughts;
  return {
    ...(prompt > 0 && { promptTokenCount: prompt }),
    ...(u.cache_read && { cachedContentTokenCount: u.cache_read }),
    ...(said > 0 && { candidatesTokenCount: said }),
    ...(thoughts > 0 && { thoughtsTokenCount: thoughts }),
    totalTokenCount: prompt + said + thoughts,
  };
}
