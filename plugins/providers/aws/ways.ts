// Which of the service's protocols a model is asked in: its name says so, or the operator does.
import { isClaude } from "./claude.ts";
import { isAmazonPicture, isStability } from "./pictures.ts";

export type Way =
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
export interface Said {
  readonly claude: readonly string[];
  readonly openai: readonly string[];
  readonly mantle: readonly string[];
  /** A guardrail stands before every chat: then Claude is asked in Converse too, which has a word for it. */
  readonly guarded: boolean;
}

/** For each way, whether a model goes by it: each goes by one. */
export const wayTo =
  (said: Said) =>
  (way: Way) =>
  (model: string): boolean =>
    wayOf(model, said) === way;

function wayOf(model: string, said: Said): Way {
  const fits = (patterns: readonly string[]) => patterns.some((pattern) => isLike(pattern, model));
  if (fits(said.mantle)) return isClaude(model) ? "mantle claude" : "mantle";
  if (fits(said.openai)) return "openai";
  if (isClaude(model) || fits(said.claude)) return said.guarded ? "converse" : "claude";
  if (/(?:^|[./])amazon\.titan-embed-text/.test(model)) return "titan";
  if (/(?:^|[./])cohere\.embed-/.test(model)) return "cohere";
  if (isAmazonPicture(model) || isStability(model)) return "pictures";
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
