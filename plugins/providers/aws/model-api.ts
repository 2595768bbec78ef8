// Selects the API for a model by the model's name or by the operator's patterns.
import { isClaude } from "./claude.ts";
import { isAmazonImageModel, isStability } from "./images.ts";

export type ModelApi =
  | "claude"
  | "converse"
  | "titan"
  | "cohere"
  | "pictures"
  | "rerank"
  | "openai"
  | "mantle"
  | "mantle claude";

/** Model patterns as configured by the operator. */
export interface ApiPatterns {
  readonly claude: readonly string[];
  readonly openai: readonly string[];
  readonly mantle: readonly string[];
  /**
   * Whether a guardrail applies to chat. Claude then uses Converse too, which supports guardrails.
   */
  readonly hasGuardrail: boolean;
}

/** Returns a predicate that selects the models of an API. Each model belongs to exactly one API. */
export const usesApi =
  (patterns: ApiPatterns) =>
  (way: ModelApi) =>
  (model: string): boolean =>
    apiFor(model, patterns) === way;

function apiFor(model: string, apiPatterns: ApiPatterns): ModelApi {
  const fits = (patterns: readonly string[]) => patterns.some((pattern) => isLike(pattern, model));
  if (fits(apiPatterns.mantle)) return isClaude(model) ? "mantle claude" : "mantle";
  if (fits(apiPatterns.openai)) return "openai";
  if (isClaude(model) || fits(apiPatterns.claude))
    return apiPatterns.hasGuardrail ? "converse" : "claude";
  if (/(?:^|[./])amazon\.titan-embed-text/.test(model)) return "titan";
  if (/(?:^|[./])cohere\.embed-/.test(model)) return "cohere";
  if (isAmazonImageModel(model) || isStability(model)) return "pictures";
  return /(?:^|[./])(?:cohere|amazon)\.rerank-/.test(model) ? "rerank" : "converse";
}

function isLike(pattern: string, model: string): boolean {
  const star = pattern.indexOf("*");
  if (star < 0) return pattern === model;
  const [head, tail] = [pattern.slice(0, star), pattern.slice(star + 1)];
  return (
    model.length >= head.length + tail.length && model.startsWith(head) && model.endsWith(tail)
  );
}
