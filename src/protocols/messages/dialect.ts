// Differences between backends that use this protocol. A dialect is plain data, so a provider can
// be defined without code. If models of one provider differ, each entry of `models` names them in
// `of`.
import { matchesGlob } from "../../lib/glob.ts";

export interface MessagesTraits {
  /**
   * How thinking is requested. `adaptive` uses the type `adaptive` with an effort and can be
   * disabled. `always` does the same but cannot be disabled. `budget` uses the type `enabled` with
   * a token budget. `none` means that thinking is not supported.
   */
  thinking?: "adaptive" | "always" | "budget" | "none";
  /** Supported effort levels, from low to high. */
  efforts?: readonly string[];
  /**
   * Which of `temperature`, `top_p`, and `top_k` the model accepts: all, either `temperature` or
   * `top_p`, or none.
   */
  sampling?: "all" | "either" | "none";
  /** Whether `messages` may contain the role `system`. */
  systemMessages?: boolean;
  /** Whether tools may have `strict`. */
  strictTools?: boolean;
  /**
   * Default for `max_tokens` if the client sets none and the catalog has no limit for the model.
   */
  maxTokens?: number;
}

export interface MessagesDialect extends MessagesTraits {
  /** Origin whose signatures are valid here. Anthropic's own platforms share one origin. */
  signer?: string;
  /** Whether the backend accepts unsigned thinking in the conversation. */
  acceptsUnsignedThinking?: boolean;
  /**
   * Whether the backend supports beta features. If so, `anthropic-beta` and `?beta=true` are
   * forwarded.
   */
  betas?: boolean;
  /** Whether the backend has an endpoint that counts tokens. */
  countsTokens?: boolean;
  /** Top-level fields that the backend rejects with an error. */
  dropFields?: readonly string[];
  /**
   * Traits of individual models. Every matching entry overrides the traits before it. One `*` in a
   * pattern matches any text.
   */
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

/**
 * Traits of Anthropic's models, both at Anthropic and at clouds that serve them. Models are
 * identified by the names that Anthropic uses.
 */
const LOW_TO_HIGH = ["low", "medium", "high"];

/**
 * Thinking mode and rejected fields per model family. A model that is newer than this list is
 * treated like the newest family.
 */
export const claude: MessagesDialect = {
  thinking: "adaptive",
  efforts: [...LOW_TO_HIGH, "xhigh", "max"],
  sampling: "none",
  systemMessages: true,
  maxTokens: 32_000,
  models: [
    {
      of: ["claude-3*"],
      thinking: "none",
      sampling: "all",
      systemMessages: false,
      strictTools: false,
      maxTokens: 4096,
    },
    { of: ["claude-3-7*"], thinking: "budget", maxTokens: 32_000 },
    {
      of: ["claude-opus-4*", "claude-sonnet-4*", "claude-haiku-4*"],
      thinking: "budget",
      sampling: "either",
      systemMessages: false,
    },
    { of: ["claude-opus-4-1*", "claude-opus-4-2*", "claude-sonnet-4-2*"], strictTools: false },
    {
      of: ["claude-opus-4-6*", "claude-sonnet-4-6*"],
      thinking: "adaptive",
      efforts: [...LOW_TO_HIGH, "max"],
    },
    { of: ["claude-opus-4-7*", "claude-opus-4-8*"], thinking: "adaptive", sampling: "none" },
    { of: ["claude-fable-*", "claude-opus-5-5*", "claude-sonnet-5-5*"], thinking: "always" },
  ],
};
