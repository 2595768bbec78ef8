import { inputTokens, outputTokens, type Usage } from "tollgate/plugin";

/** Counts as clients report them: total input, cached input, total output, and reasoning. */
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
