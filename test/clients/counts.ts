import { inputTokens, outputTokens, type Usage } from "tollgate/plugin";

/** Counts as clients have them: all that went in, what of it a cache gave, all that came out, what of it was thought. */
export interface Counts {
  readonly input: number;
  readonly cached: number;
  readonly output: number;
  readonly reasoning: number;
  readonly images: number;
}

export const countsOf = (usage: Usage): Counts => ({
  input: inputTokens(usage),
  cached: usage.cache_read ?? 0,
  output: outputTokens(usage),
  reasoning: usage.reasoning ?? 0,
  images: usage.images ?? 0,
});
