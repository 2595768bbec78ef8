// What differs between backends that speak this wire. Data, so that a provider row can be written without code; where
// models of one provider differ, `of` says how.
import { matchesGlob } from "../../lib/glob.ts";

export interface MessagesTraits {
  /**
   * How a model is told to think. adaptive: `adaptive` and an effort, can be switched off · always: the same, cannot
   * be switched off · budget: `enabled` with a token budget · none: not at all.
   */
  thinking?: "adaptive" | "always" | "budget" | "none";
  /** Efforts it knows, from low to high. */
  efforts?: readonly string[];
  /** Which of temperature, top_p and top_k it takes: all of them, temperature or top_p but not both, or none. */
  sampling?: "all" | "either" | "none";
  /** Takes the role `system` inside `messages`. */
  systemMessages?: boolean;
  /** Takes `strict` on tools. */
  strictTools?: boolean;
  /** Fills in for a `max_tokens` that the client did not give, where the catalog does not know the model's own. */
  maxTokens?: number;
}

export interface MessagesDialect extends MessagesTraits {
  /** Whose signatures are native here. Those of Anthropic's own platforms are one family. */
  signer?: string;
  /** Takes unsigned thinking back. */
  acceptsUnsignedThinking?: boolean;
  /** Knows beta features: `anthropic-beta` and `?beta=true` reach it. */
  betas?: boolean;
  /** Has an endpoint that counts tokens. */
  countsTokens?: boolean;
  /** Top-level fields that it answers with an error. */
  dropFields?: readonly string[];
  /** Where models differ: the last that fits adds to what stands above it. One `*` stands for anything. */
  models?: readonly (MessagesTraits & { of: readonly string[] })[];
}

export type MessagesSettings = Required<Omit<MessagesDialect, "models">>;

const DEFAULTS: MessagesSettings = {
  signer: "messages",
  acceptsUnsignedThinking: false,
  betas: true,
  countsTokens: true,
  dropFields: [],
  thinking: "adaptive",
  efforts: ["low", "medium", "high", "xhigh", "max"],
  sampling: "all",
  systemMessages: false,
  strictTools: true,
  maxTokens: 8192,
};

export function settingsFor(dialect: MessagesDialect, model: string): MessagesSettings {
  const { models = [], ...mine } = dialect;
  let found: MessagesSettings = { ...DEFAULTS, ...mine };
  for (const { of, ...traits } of models)
    if (of.some((pattern) => matchesGlob(pattern, model))) found = { ...found, ...traits };
  return found;
}
