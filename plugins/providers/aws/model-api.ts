// Which of the service's protocols a model is asked in: its name says so, or the operator does.
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

/** Patterns of models, as the operator wrote them. */
export interface ApiPatterns {
  readonly claude: readonly string[];
  readonly openai: readonly string[];
  readonly mantle: readonly string[];
  /** A guardrail stands before every chat: then Claude is asked in Converse too, which has a word for it. */
  readonly hasGuardrail: boolean;
}

/** For each way, whether a model goes by it: each goes by one. */
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
